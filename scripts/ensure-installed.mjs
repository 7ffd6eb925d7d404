// Installs packages that are missing or differ from the lock file, so that `npm start` and `npm test` are the only
// commands a user needs. Runs on the machine's own Node (20 or newer) before Pennon's Node exists: plain JavaScript, no
// dependency.
//
// Packages are installed in a separate folder beside `node_modules`, which they replace by a rename once they are
// complete: processes on the old packages continue, and a killed installation changes nothing. npm checks what it unpacks
// against the hashes of the lock file. None of our packages needs an install script, so none is run.
//
// `--production` leaves out the development tools; a full installation serves both. `--keep` is for commands beside a
// running instance: they use the installed packages, whatever their version.
//
// A machine whose own Node can run Pennon may do without all optional packages, including Node: what `npm ci
// --omit=optional` left out stays out.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const installedPath = join(root, 'node_modules')
/** Names the installation that holds the lock: its folder, and a number that changes while it runs. */
const installLockPath = join(root, '.installing')
const beatMs = 500
/** A lock that has not changed for this long belongs to an installation that was killed. */
const silenceMsMax = 5_000

const { '': project, ...wanted } = readPackages(join(root, 'package-lock.json'))
const isLockNewer = writtenAt(join(root, 'package-lock.json')) > writtenAt(join(installedPath, '.package-lock.json'))
const before = installed()
const wasInstalled = Object.keys(before).length > 0
const isKept = process.argv.includes('--keep') && wasInstalled
const hasOwnNode = Number.parseInt(process.versions.node, 10) >= Number(/\d+/.exec(project.engines?.node)?.[0])
const leavesOutOptional =
  hasOwnNode &&
  wasInstalled &&
  !Object.keys(project.optionalDependencies ?? {}).some(name => before[`node_modules/${name}`])
let isInterrupted = false
// Keeps the development tools of Pennon's developers when a start finds a newer lock file.
const isProduction = process.argv.includes('--production') && !Object.values(before).some(({ dev }) => dev)

if (!isInstalled() && !(isKept && hasNode())) await installOneAtATime()
else if (!isInstalled())
  console.error('pennon: other versions of packages are installed; `npm start` brings them up to date.')

if (process.platform === 'linux' && hasNode()) requireLibraries()

/** Small systems lack a library that Node needs, and the loader does not say how to install it. */
function requireLibraries() {
  const { stderr } = spawnSync(join(installedPath, '.bin', 'node'), ['--version'], { encoding: 'utf8' })
  const [, library] = /error while loading shared libraries: ([\w.+-]+)/.exec(stderr ?? '') ?? []
  if (library === undefined) return
  const name = library.replace(/\.so.*$/, '')
  const how =
    name === 'libatomic'
      ? '`apt-get install libatomic1` on Debian and Ubuntu, `dnf install libatomic` on Fedora and Red Hat'
      : `the package of your system that has ${library}`
  fail(`this system lacks ${library}, which the Node that comes with Pennon needs. Install it: ${how}. Then try again.`)
}

/** Checks the file that npm writes at the end of an installation, so `npm ci` by hand is as good as this script. */
function isInstalled() {
  const found = installed()
  return hasNode() && Object.entries(wanted).every(([path, entry]) => isAsWanted(found[path], entry))
}

function isAsWanted(found, { version, integrity, dev, optional, devOptional, os, cpu }) {
  if (found !== undefined) return found.version === version && (!integrity || found.integrity === integrity)
  if (dev && isProduction) return true
  if (!optional && !devOptional) return false
  // An optional package may be missing if it is for another platform, or if the registry did not have it when this lock
  // file was installed.
  const isOfHere =
    [os ?? process.platform].flat().includes(process.platform) && [cpu ?? process.arch].flat().includes(process.arch)
  return !isOfHere || !isLockNewer || leavesOutOptional
}

function installed() {
  return existsSync(join(installedPath, '.package-lock.json'))
    ? readPackages(join(installedPath, '.package-lock.json'))
    : {}
}

/** Epoch ms; 0 if there is no such file. */
function writtenAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function hasNode() {
  return hasOwnNode || existsSync(join(installedPath, '.bin', 'node'))
}

/** By path; '' is the project itself. */
function readPackages(lockPath) {
  return JSON.parse(readFileSync(lockPath, 'utf8')).packages
}

async function installOneAtATime() {
  let beat = 0
  const name = `${basename(installLockPath)}-${randomBytes(4).toString('hex')}`
  const lockText = () => JSON.stringify({ folder: name, beat: beat++ })
  for (let waitedCount = 0; ; waitedCount++) {
    if (takeLock(lockText())) break
    if (waitedCount === 0) console.error('pennon: waiting for an installation in this folder to end …')
    await waitForLock()
    if (isInstalled()) return
  }
  // The lock names the folder before it exists, so that the next installation after a kill finds it.
  const folder = join(root, name)
  const beating = setInterval(() => writeFileSync(installLockPath, lockText()), beatMs)
  try {
    mkdirSync(folder, { mode: 0o700 })
    await install(folder)
  } finally {
    clearInterval(beating)
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    rmSync(installLockPath, { force: true })
  }
}

/** @param folder on the file system of `node_modules`, so that a rename is enough. */
async function install(folder) {
  console.error(
    `pennon: installing dependencies (${isProduction ? 'production' : 'full'})${leavesOutOptional ? '' : ', nearly 1 GB'}, usually within a minute …`,
  )
  const elapsing = printElapsed()
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    if (existsSync(join(root, name))) copyFileSync(join(root, name), join(folder, name))
  // The `engines` of packages, ours included, refer to the Node that is being installed, not to the one that runs npm
  // here. A warning would mislead, and a machine that refuses such packages (engine-strict) could never start Pennon.
  const args = [
    'ci',
    '--ignore-scripts',
    '--loglevel=error',
    '--engine-strict=false',
    '--no-audit',
    '--no-fund',
    '--no-progress',
  ]
  if (isProduction) args.push('--omit=dev')
  if (leavesOutOptional) args.push('--omit=optional')
  const code = await run('npm', args, folder)
  clearInterval(elapsing)
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  if (isInterrupted)
    return fail('the installation was interrupted; nothing was changed. The next start begins it anew.')
  if (code !== 0)
    return fail('`npm ci` failed; its message is above. Check the network and the npm registry, then try again.')
  const fresh = join(folder, 'node_modules')
  if (!hasOwnNode && !existsSync(join(fresh, '.bin', 'node')))
    return fail(
      `no Node comes with Pennon for ${process.platform} on ${process.arch}: it runs on Linux and macOS, x64 and arm64.`,
    )
  const replaced = join(folder, 'replaced')
  try {
    if (existsSync(installedPath)) renameSync(installedPath, replaced)
    renameSync(fresh, installedPath)
  } catch (cause) {
    giveBack(replaced)
    // Another process may have installed its packages there first; then nothing is left to do.
    if (!isInstalled())
      fail(`node_modules cannot be replaced (${cause.message}): stop what runs on it, and run \`npm ci\`.`)
  }
}

/** A quiet npm prints nothing, and a minute without output looks like a hang. */
function printElapsed() {
  const startMs = performance.now()
  const elapsed = () => `pennon: still installing, ${Math.round((performance.now() - startMs) / 1_000)} s so far`
  const { isTTY } = process.stderr
  return setInterval(
    () => process.stderr.write(isTTY ? `\r${elapsed()}\x1b[K` : `${elapsed()}\n`),
    isTTY ? 1_000 : 15_000,
  )
}

/** Restores the old packages if an installation ended between its two renames. */
function giveBack(replaced) {
  if (!existsSync(installedPath) && existsSync(replaced)) renameSync(replaced, installedPath)
}

function fail(message) {
  console.error(`pennon: ${message}`)
  process.exitCode = 2
}

/** Signals to this process kill the command too. @returns its exit code; null if a signal ended it or it cannot run. */
function run(command, args, cwd) {
  return new Promise(resolve => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 2, 'inherit'], shell: process.platform === 'win32' })
    // SIGKILL, because npm would otherwise wait for the network. What it has installed so far is thrown away anyway.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
      process.on(signal, () => {
        isInterrupted = true
        child.kill('SIGKILL')
      })
    child.once('error', cause => {
      console.error(`pennon: ${command} cannot be run (${cause.message}).`)
      resolve(null)
    })
    child.once('exit', resolve)
  })
}

/** @returns false if another installation holds the lock, or held it and was killed. */
function takeLock(lockText) {
  try {
    writeFileSync(installLockPath, lockText, { flag: 'wx' })
    return true
  } catch (cause) {
    if (cause.code === 'EEXIST') return false
    console.error(
      `pennon: packages cannot be installed in ${root} (${cause.message}). Make it writable, or run \`npm ci\`.`,
    )
    process.exit(2)
  }
}

/**
 * Returns when the lock is released, or removes it if its installation has stopped. Does not check a process id, since
 * another program may have it by now. Two installations at once do no harm: they only do the work twice.
 */
async function waitForLock() {
  for (let last = readLock(), silentMs = 0; last !== null; silentMs += beatMs) {
    if (silentMs >= silenceMsMax) return clearUp(last)
    await sleep(beatMs)
    const now = readLock()
    if (now !== last) silentMs = 0
    last = now
  }
}

/** Removes what a killed installation left behind. */
function clearUp(lockText) {
  const name = /"folder":"(\.installing-\w+)"/.exec(lockText)?.[1]
  if (name !== undefined) {
    giveBack(join(root, name, 'replaced'))
    rmSync(join(root, name), { recursive: true, force: true, maxRetries: 3 })
  }
  rmSync(installLockPath, { force: true })
}

function readLock() {
  try {
    return readFileSync(installLockPath, 'utf8')
  } catch (cause) {
    if (cause.code === 'ENOENT') return null // it has just ended
    throw cause
  }
}
