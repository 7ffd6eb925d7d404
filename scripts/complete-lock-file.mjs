// Adds the optional packages that a registry did not offer for this platform to the lock file. Run it after every `npm
// install NAME`: without them, `npm ci` on any machine refuses the lock file as incomplete.
import { readFileSync, writeFileSync } from 'node:fs'

const lockPath = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(lockPath, 'utf8'))
let addedCount = 0
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const path = `node_modules/${name}`
    if (lock.packages[path]) continue
    const isDev = entry.dev === true && { dev: true }
    lock.packages[path] = { version: version.replace(/^[\^~]/, ''), ...platformOf(name), ...isDev, optional: true }
    addedCount++
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync(lockPath, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`package-lock.json: ${addedCount} optional packages added`)

function platformOf(name) {
  const os = ['darwin', 'linux', 'win32'].find(candidate => name.includes(candidate))
  const cpu = ['arm64', 'x64', 'ia32'].find(candidate => name.includes(candidate))
  return { ...(cpu && { cpu: [cpu] }), ...(os && { os: [os] }) }
}
