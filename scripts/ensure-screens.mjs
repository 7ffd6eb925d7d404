// Builds the screens (`web/`) when a source has changed, after installing what is missing, so that `npm start` stays the only
// command. Runs on the machine's own Node (20 or newer): plain JavaScript, no dependency.
//
// A build is made in a folder of its own and renamed, so it is complete or absent; two at once only do the work twice. One
// that fails, for example in a folder that cannot be written, never keeps an instance from starting: `/ui/` then says how
// to build. `--required` is for those who want the build itself (`npm run ui:build`).
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

await import('./ensure-installed.mjs') // with the options of this call

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'web', 'dist')
/** Instances and tabs that were opened before the newest build still use theirs. */
const keptBuilds = 3

// An image has only the built screens.
const canBuild = existsSync(join(root, 'web', 'build.ts'))

if (!process.exitCode && canBuild && !isBuilt()) {
  console.error('pennon: building the screens …')
  try {
    build()
  } catch (cause) {
    console.error(`pennon: the screens could not be built: ${cause.message}. \`npm run ui:build\` tries again.`)
    if (process.argv.includes('--required')) process.exitCode = 1
  }
}

function isBuilt() {
  try {
    const { stamp, sources } = JSON.parse(readFileSync(join(dist, 'current.json'), 'utf8'))
    return stamp === computeStamp(sources) && existsSync(join(dist, stamp))
  } catch {
    return false // not built yet, or a file of the last build is gone
  }
}

function build() {
  mkdirSync(dist, { recursive: true })
  const folder = mkdtempSync(join(dist, '.building-'))
  try {
    const own = join(root, 'node_modules', '.bin', 'node')
    const node = existsSync(own) ? own : process.execPath
    const options = ['--disable-warning=ExperimentalWarning', join(root, 'web', 'build.ts'), folder]
    const { status, stdout, stderr, error } = spawnSync(node, options, { encoding: 'utf8' })
    if (status !== 0) throw new Error(error?.message ?? (stderr.trim() || 'the build ended without a message'))
    // mkdtemp leaves it to its owner alone, but an instance may run as another user.
    chmodSync(folder, 0o755)
    const sources = JSON.parse(stdout)
    const stamp = computeStamp(sources)
    rmSync(join(dist, stamp), { recursive: true, force: true })
    renameSync(folder, join(dist, stamp))
    const current = `${folder}.json`
    writeFileSync(current, JSON.stringify({ stamp, sources }))
    renameSync(current, join(dist, 'current.json'))
    removeOldBuilds()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * A hash of everything that a build is made from.
 * @param sources the files of `src` that the build contains: it contains another only after one of these has changed.
 */
function computeStamp(sources) {
  // With it, the build has the workbench as well.
  const hash = createHash('sha256').update(`${process.env.PENNON_UI_WORKBENCH}\0`)
  for (const path of ['package-lock.json', 'tsconfig.json', ...listFiles('web'), ...sources])
    hash.update(`${path}\0`).update(readFileSync(join(root, path)))
  return hash.digest('hex').slice(0, 16)
}

function listFiles(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => name !== 'dist' && !name.includes('.test.'))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(entry => (entry.isDirectory() ? listFiles(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]))
}

function removeOldBuilds() {
  const folders = readdirSync(dist, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => ({ name, path: join(dist, name), builtAtMs: statSync(join(dist, name)).mtimeMs }))
    .sort((a, b) => b.builtAtMs - a.builtAtMs)
  const builds = folders.filter(({ name }) => !name.startsWith('.'))
  // A build that was killed leaves its folder behind; no other takes an hour.
  const abandoned = folders.filter(({ name, builtAtMs }) => name.startsWith('.') && builtAtMs < Date.now() - 3_600_000)
  for (const { path } of [...builds.slice(keptBuilds), ...abandoned]) rmSync(path, { recursive: true, force: true })
}
