// Installs what is missing or older than the lock file, so that `npm start` and `npm test` are the only commands anyone needs.
// Runs on the machine's own Node (20 or newer) before Pennon's Node exists: plain JavaScript, no dependency.
//
// An installation is made in a folder of its own beside `node_modules` and takes its place by a rename once it is whole: what
// runs on the old packages goes on, and one that is killed changes nothing. npm checks what it unpacks against the
// hashes of the lock file. No package of ours needs a script of its own, so none is run.
//
// `--production` leaves the development tools out; a full installation serves both. `--keep` is for commands beside a running
// instance: they take what is installed, whatever version it is of.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const installedPath = join(root, 'node_modules')
/** Says who installs now: the folder of that installation, and a number that changes as long as it goes on. */
const turnPath = join(root, '.installing')
const beatMs = 500
/** A turn that did not change for this long is one of an installation that was killed. */
const silenceMsMax = 5_000

const wanted = packagesIn(join(root, 'package-lock.json'))
const isLockNewer = writtenAt(join(root, 'package-lock.json')) > writtenAt(join(installedPath, '.package-lock.json'))
const isKept = process.argv.includes('--keep')
// Who works on Pennon keeps the development tools when a start finds a newer lock file.
const isProduction = process.argv.includes('--production') && !Object.values(installed()).some(({ dev }) => dev)

if (!isInstalled() && !(isKept && hasNode())) await installInTurn()
else if (!isInstalled())
  console.error('pennon: other versions of packages are installed; `npm start` brings them up to date.')

/** By what npm itself writes at the end of an installation, whoever ran it: `npm ci` by hand is as good as ours. */
function isInstalled() {
  const found = installed()
  return hasNode() && Object.entries(wanted).every(([path, entry]) => isAsWanted(found[path], entry))
}

function isAsWanted(found, { version, integrity, dev, optional, devOptional, os, cpu }) {
  if (found !== undefined) return found.version === version && (!integrity || found.integrity === integrity)
  if (dev && isProduction) return true
  if (!optional && !devOptional) return false
  // It may be missing when it is for another platform, or when the registry did not have it when this lock file was
  // installed.
  const isOfHere =
    [os ?? process.platform].flat().includes(process.platform) && [cpu ?? process.arch].flat().includes(process.arch)
  return !isOfHere || !isLockNewer
}

function installed() {
  return existsSync(join(installedPath, '.package-lock.json'))
    ? packagesIn(join(installedPath, '.package-lock.json'))
    : {}
}

/** Epoch ms; 0 when there is no such file. */
function writtenAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function hasNode() {
  return existsSync(join(installedPath, '.bin', 'node'))
}

function packagesIn(lockPath) {
  const { '': _, ...packages } = JSON.parse(readFileSync(lockPath, 'utf8')).packages
  return packages
}

async function installInTurn() {
  let beat = 0
  const name = `${basename(turnPath)}-${randomBytes(4).toString('hex')}`
  const turn = () => JSON.stringify({ folder: name, beat: beat++ })
  for (let waitedCount = 0; ; waitedCount++) {
    if (takeTurn(turn())) break
    if (waitedCount === 0) console.error('pennon: waiting for an installation in this folder to end …')
    await untilTurnEnds()
    if (isInstalled()) return
  }
  // Named in the turn before it is there, so that whoever comes after a kill knows of it.
  const folder = join(root, name)
  const beating = setInterval(() => writeFileSync(turnPath, turn()), beatMs)
  try {
    mkdirSync(folder, { mode: 0o700 })
    await install(folder)
  } finally {
    clearInterval(beating)
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    rmSync(turnPath, { force: true })
  }
}

/** @param folder on the file system of `node_modules`, so that a rename is enough. */
async function install(folder) {
  console.error(
    `pennon: installing dependencies (${isProduction ? 'production' : 'full'}), about 20 seconds the first time …`,
  )
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    if (existsSync(join(root, name))) copyFileSync(join(root, name), join(folder, name))
  const args = ['ci', '--ignore-scripts', '--loglevel=error', '--no-audit', '--no-fund']
  const code = await run('npm', isProduction ? [...args, '--omit=dev'] : args, folder)
  if (code !== 0)
    return fail('`npm ci` failed; its message is above. Check the network and the npm registry, then try again.')
  const fresh = join(folder, 'node_modules')
  if (!existsSync(join(fresh, '.bin', 'node')))
    return fail(
      `no Node comes with Pennon for ${process.platform} on ${process.arch}: it runs on Linux and macOS, x64 and arm64.`,
    )
  const replaced = join(folder, 'replaced')
  try {
    if (existsSync(installedPath)) renameSync(installedPath, replaced)
    renameSync(fresh, installedPath)
  } catch (cause) {
    giveBack(replaced)
    // Another process may have put its packages in the same place first; then nothing is left to do.
    if (!isInstalled())
      fail(`node_modules cannot be replaced (${cause.message}): stop what runs on it, and run \`npm ci\`.`)
  }
}

/** The old packages, of an installation that ended between its two renames. */
function giveBack(replaced) {
  if (!existsSync(installedPath) && existsSync(replaced)) renameSync(replaced, installedPath)
}

function fail(message) {
  console.error(`pennon: ${message}`)
  process.exitCode = 2
}

/** @returns its exit code; null when a signal ended it, as those for this process do. */
function run(command, args, cwd) {
  return new Promise(resolve => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 2, 'inherit'], shell: process.platform === 'win32' })
    // Asked politely, npm waits for the network. What it has made so far is thrown away anyway.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill('SIGKILL'))
    child.once('error', cause => {
      console.error(`pennon: ${command} cannot be run (${cause.message}).`)
      resolve(null)
    })
    child.once('exit', resolve)
  })
}

/** @returns false: another one has it, or had it and was killed. */
function takeTurn(turn) {
  try {
    writeFileSync(turnPath, turn, { flag: 'wx' })
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
 * Returns when the turn is over, or takes it from who does not use it any more: no number of a process is asked for, since
 * another program may have it by now. Two that install at once disturb nobody, they only do the work twice.
 */
async function untilTurnEnds() {
  for (let last = readTurn(), silentMs = 0; last !== null; silentMs += beatMs) {
    if (silentMs >= silenceMsMax) return clearUp(last)
    await sleep(beatMs)
    const now = readTurn()
    if (now !== last) silentMs = 0
    last = now
  }
}

/** What a killed installation left. */
function clearUp(turn) {
  const name = /"folder":"(\.installing-\w+)"/.exec(turn)?.[1]
  if (name !== undefined) {
    giveBack(join(root, name, 'replaced'))
    rmSync(join(root, name), { recursive: true, force: true, maxRetries: 3 })
  }
  rmSync(turnPath, { force: true })
}

function readTurn() {
  try {
    return readFileSync(turnPath, 'utf8')
  } catch (cause) {
    if (cause.code === 'ENOENT') return null // it has just ended
    throw cause
  }
}
