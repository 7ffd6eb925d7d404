// Installs what is missing or older than the lock file, so that `npm start` and `npm test` are the only commands anyone needs.
// Runs on the machine's own Node (20 or newer) before Pennon's Node exists: plain JavaScript, no dependency.
// `--production` leaves the development tools out; a full installation serves both.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const stampPath = join(root, 'node_modules', '.pennon-installed')
const turnPath = join(root, '.installing')
// Who works on Pennon keeps the development tools when a start finds a newer lock file.
const kind = process.argv.includes('--production') && stamp()[1] !== 'full' ? 'production' : 'full'
const lockHash = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex')

if (!isInstalled()) {
  await takeTurn()
  if (!isInstalled()) install()
}

function install() {
  console.error(`pennon: installing dependencies (${kind}), about 20 seconds the first time …`)
  const [installedHash] = stamp()
  // What a start installed is added to, not taken away first: an instance may be running on it.
  const verb = installedHash === lockHash ? ['install', '--no-save'] : ['ci']
  const args = [
    ...verb,
    '--loglevel=error',
    '--no-audit',
    '--no-fund',
    ...(kind === 'production' ? ['--omit=dev'] : []),
  ]
  const npm = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 2, 'inherit'],
    shell: process.platform === 'win32',
  })
  if (npm.status !== 0) {
    console.error(
      `pennon: \`npm ${verb[0]}\` failed; its message is above. Check the network and the npm registry, then try again.`,
    )
    process.exit(2)
  }
  writeFileSync(stampPath, `${lockHash} ${kind}\n`)
}

function isInstalled() {
  const [hash, installedKind] = stamp()
  const hasNode = existsSync(join(root, 'node_modules', 'node', 'bin', 'node'))
  return hasNode && hash === lockHash && (installedKind === 'full' || installedKind === kind)
}

/** Hash of the lock file that was installed, and how much of it. */
function stamp() {
  return existsSync(stampPath) ? readFileSync(stampPath, 'utf8').trim().split(' ') : []
}

/** One installation at a time: two in one folder remove each other's files. Waits for whoever began, while it lives. */
async function takeTurn() {
  const ownPath = `${turnPath}-${process.pid}`
  for (let waitedCount = 0; ; waitedCount++) {
    try {
      // With its text from the first moment on: a file without one would look abandoned.
      writeFileSync(ownPath, String(process.pid))
      linkSync(ownPath, turnPath)
      process.on('exit', () => rmSync(turnPath, { force: true }))
      return
    } catch (cause) {
      if (cause.code !== 'EEXIST') return // a folder that cannot be written: npm says so better
    } finally {
      rmSync(ownPath, { force: true })
    }
    if (!isAlive(Number(readTurn()))) rmSync(turnPath, { force: true })
    else if (waitedCount === 0) console.error('pennon: waiting for an installation in this folder to end …')
    await new Promise(resolve => setTimeout(resolve, 200))
  }
}

function readTurn() {
  try {
    return readFileSync(turnPath, 'utf8')
  } catch {
    return '' // it has just ended
  }
}

function isAlive(pid) {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return cause.code === 'EPERM'
  }
}
