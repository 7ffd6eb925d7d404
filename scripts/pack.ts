// Creates `pennon-VERSION.tgz`, a package that npm installs into any folder: every module that the program can load, as
// JavaScript, the built screens, and the documentation with everything it links to. It runs on the machine's Node, so
// packages that include one are left out, and those that only a build of the screens needs. The same commit gives the same
// bytes (docs/decisions/0076-a-package-of-javascript.md).

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, posix, resolve } from 'node:path'

const root = join(import.meta.dirname, '..')
const destination = resolve(process.argv[2] ?? root)
const folder = mkdtempSync(join(tmpdir(), 'pennon-pack-'))
/** A module of Pennon or its data, as sources name it: `'#core/x.ts'`, `'./x.ts'`, `'../x.json'`. */
const moduleNames = /'(#|\.\.?\/)([\w./-]+\.(?:ts|json))'/g

try {
  const { name, version } = writeManifests()
  writeModules()
  for (const path of listOtherFiles()) cpSync(join(root, path), join(folder, path), { recursive: true })
  writeScreens()
  execFileSync('npm', ['pack', '--silent', '--pack-destination', destination], { cwd: folder, stdio: 'pipe' })
  const file = join(destination, `${name}-${version}.tgz`)
  console.log(
    `${file}\n\nIn an empty folder, with Node 26 or newer:\n  npm install --prefix . '${file}'\n  npx pennon serve`,
  )
} finally {
  rmSync(folder, { recursive: true })
}

interface LockedPackage {
  readonly version: string
  /** Only for a package that is installed under another name. */
  readonly name?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly bin?: { readonly node?: string }
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/**
 * Every production package in the lock file becomes a dependency with its exact version: npm follows the
 * `npm-shrinkwrap.json` of a package only if the package comes from a registry.
 */
function writeManifests(): { name: string; version: string } {
  const {
    scripts: _,
    devDependencies: _dev,
    allowScripts: _allow,
    uiDependencies,
    ...manifest
  } = readJson('package.json')
  const { packages, ...lock } = readJson('package-lock.json')
  const { '': _ours, ...locked } = packages as Record<string, LockedPackage>
  const names = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
  const needed = collectNeeded(
    locked,
    names.filter(name => !uiDependencies.includes(name)),
  )
  const kept = Object.entries(locked).filter(([path, { bin }]) => needed.has(path) && bin?.node === undefined)
  const pinned = (isOptional: boolean) =>
    Object.fromEntries(
      kept
        .filter(([path, { optional = false }]) => path.lastIndexOf('node_modules/') === 0 && optional === isOptional)
        .map(([path, { name, version }]) => [
          path.replace('node_modules/', ''),
          name === undefined ? version : `npm:${name}@${version}`,
        ]),
    )
  const pinnedManifest = { ...manifest, dependencies: pinned(false), optionalDependencies: pinned(true) }
  writeJson('package.json', pinnedManifest)
  writeJson('npm-shrinkwrap.json', { ...lock, packages: { '': pinnedManifest, ...Object.fromEntries(kept) } })
  return manifest
}

/** The paths of the named packages and of all that they need. */
function collectNeeded(locked: Readonly<Record<string, LockedPackage>>, names: readonly string[]): ReadonlySet<string> {
  const needed = new Set(names.map(name => `node_modules/${name}`))
  for (const path of needed) {
    const { dependencies, optionalDependencies } = locked[path]!
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const found = findLocked(locked, path, name)
      if (found !== undefined) needed.add(found)
    }
  }
  return needed
}

/** As Node finds a package: in the folder of the one that needs it, or else in a folder above. */
function findLocked(locked: Readonly<Record<string, unknown>>, from: string, name: string): string | undefined {
  const folders = from.split('/node_modules/')
  return folders
    .map((_, index) => [...folders.slice(0, folders.length - index), name].join('/node_modules/'))
    .concat(`node_modules/${name}`)
    .find(path => path in locked)
}

/** Without the builds before the newest, which only tabs that were open in this clone may still use. */
function writeScreens(): void {
  const dist = join(root, 'web', 'dist')
  const { stamp } = readJson('web/dist/current.json')
  cpSync(join(dist, stamp), join(folder, 'web', 'dist', stamp), { recursive: true })
  cpSync(join(dist, 'current.json'), join(folder, 'web', 'dist', 'current.json'))
}

/**
 * Follows module names from `main.ts`: imports, and the entries of threads and processes. Types are stripped as Node strips
 * them when it runs the sources, so stack traces have the lines and columns of the sources.
 */
function writeModules(): void {
  const paths = new Set(['src/main.ts'])
  for (const path of paths) {
    const source = readFileSync(join(root, path), 'utf8')
    const code = path.endsWith('.ts') ? stripTypeScriptTypes(source) : source
    for (const [, start, rest] of code.matchAll(moduleNames)) {
      const named = start === '#' ? `src/${rest}` : posix.join(dirname(path), `${start}${rest}`)
      if (named.startsWith('src/')) paths.add(named)
    }
    write(
      path.replace(/\.ts$/, '.js'),
      code.replaceAll(moduleNames, name => name.replace(/\.ts'$/, ".js'")),
    )
  }
}

/** In a git checkout, only the files that git tracks: others, such as drafts, are not part of any version. */
function listOtherFiles(): readonly string[] {
  const paths = ['bin', 'deploy', 'docs', 'bench/README.md', 'NOTICE', ...globSync('*.md', { cwd: root })]
  if (!existsSync(join(root, '.git'))) return paths
  const tracked = execFileSync('git', ['ls-files', '-z', '--', ...paths], { cwd: root, encoding: 'utf8' }).split('\0')
  return tracked.filter(path => path !== '' && existsSync(join(root, path)))
}

function readJson(path: string) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

function writeJson(path: string, content: object): void {
  write(path, `${JSON.stringify(content, null, 2)}\n`)
}

function write(path: string, content: string): void {
  mkdirSync(join(folder, dirname(path)), { recursive: true })
  writeFileSync(join(folder, path), content)
}
