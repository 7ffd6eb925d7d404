// Preloaded by everything that starts Pennon, in every process and thread, since most of a start is the
// loading of some 1,800 files.

import { mkdirSync } from 'node:fs'
import { enableCompileCache, registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

// Types are stripped once, not at every start of every process and thread, and a process that finds all of them stripped
// never loads the stripper, which is 60 ms and 18 MiB. Where the folder cannot be written, they just are stripped again.
if (process.env.NODE_COMPILE_CACHE === undefined) {
  const folder = fileURLToPath(new URL('../node_modules/.cache/pennon', import.meta.url))
  try {
    // Whatever the umask: what others wrote there would run as this user.
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {} // it is only faster with it
  process.env.NODE_COMPILE_CACHE = folder
}
enableCompileCache(process.env.NODE_COMPILE_CACHE)

// Node looks at several files and folders for each import. Where the address already follows from what is written, that is a
// quarter of the loading for nothing.
const root = new URL('..', import.meta.url).href
// Where Pennon is a package itself, the others are beside it.
const packages = new URL(root.endsWith('/node_modules/pennon/') ? '..' : 'node_modules/', root).href
const formats = { '.ts': 'module-typescript', '.mjs': 'module', '.js': undefined } // Node finds out what a .js is
const ourFormats = { ...formats, '.js': 'module' }
const found = new Map()
registerHooks({
  resolve(specifier, context, nextResolve) {
    const { parentURL = '', conditions } = context
    const isOurs = parentURL.startsWith(root) && !parentURL.startsWith(`${root}node_modules/`)
    if (!(isOurs || parentURL.startsWith(packages)) || conditions.includes('require'))
      return nextResolve(specifier, context)
    const ending = /\.\w+$/.exec(specifier)?.[0]
    const format = (isOurs ? ourFormats : formats)[ending]
    const follows = (address, base) => ({ url: new URL(address, base).href, format, shortCircuit: true })
    if (specifier.startsWith('.') && ending in formats) return follows(specifier, parentURL)
    if (!isOurs) return nextResolve(specifier, context)
    if (specifier.startsWith('#') && ending in formats) return follows(`src/${specifier.slice(1)}`, root)
    if (specifier.startsWith('.')) return nextResolve(specifier, context)
    // A package, or a module of Node: the same for all of our files.
    if (!found.has(specifier)) found.set(specifier, { ...nextResolve(specifier, context), shortCircuit: true })
    return found.get(specifier)
  },
})
