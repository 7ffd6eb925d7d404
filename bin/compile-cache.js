// Preloaded (`--import`) by everything that starts Pennon: types are stripped once, not at every start of every process and
// thread, and a process that finds all of them stripped never loads the stripper, which is 60 ms and 18 MiB.
// Where the folder cannot be written, they just are stripped again.

import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/pennon', import.meta.url))
enableCompileCache(process.env.NODE_COMPILE_CACHE)
