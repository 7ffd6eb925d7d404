// Installs what is missing or older than the lock file, so that `npm start` and `npm test` are the only commands anyone needs.
// Runs on the machine's own Node (20 or newer) before Pennon's Node exists: plain JavaScript, no dependency.
// `--production` leaves the development tools out; a full installation serves both.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const stampPath = join(root, 'node_modules', '.pennon-installed')
const installed = existsSync(stampPath) ? readFileSync(stampPath, 'utf8').trim().split(' ') : []
// Who works on Pennon keeps the development tools when a start finds a newer lock file.
const kind = process.argv.includes('--production') && installed[1] !== 'full' ? 'production' : 'full'
const lockHash = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex')

if (!isInstalled()) {
  console.error(`pennon: installing dependencies (${kind}), about 20 seconds the first time …`)
  const args = ['ci', '--loglevel=error', '--no-audit', '--no-fund', ...(kind === 'production' ? ['--omit=dev'] : [])]
  const npm = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 2, 'inherit'],
    shell: process.platform === 'win32',
  })
  if (npm.status !== 0) {
    console.error(
      'pennon: `npm ci` failed; its message is above. Check the network and the npm registry, then try again.',
    )
    process.exit(2)
  }
  writeFileSync(stampPath, `${lockHash} ${kind}\n`)
}

function isInstalled() {
  const [hash, installedKind] = installed
  const hasNode = existsSync(join(root, 'node_modules', 'node', 'bin', 'node'))
  return hasNode && hash === lockHash && (installedKind === 'full' || installedKind === kind)
}
