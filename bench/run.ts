// `npm run bench [-- [--postgres] [--against TREE] WORD…]`: prints every figure beside its floor from the same run, or compares
// this tree with another. See bench/README.md.

import { arch, cpus, platform } from 'node:os'
import { parseArgs } from 'node:util'
import { compareWith } from './against.ts'
import { keepStateInPostgres } from './bench-server.ts'
import { cores } from './processes.ts'
import { beside } from './scenarios/beside.ts'
import { capture } from './scenarios/capture.ts'
import { decide } from './scenarios/decide.ts'
import { evaluation } from './scenarios/evaluation.ts'
import { importing } from './scenarios/import.ts'
import { startup } from './scenarios/startup.ts'
import { worker } from './scenarios/worker.ts'

const scenarios = { startup, decide, evaluation, capture, beside, worker, import: importing }

const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { postgres: { type: 'boolean', default: false }, against: { type: 'string' } },
})
const onPostgres = values.postgres
console.log(
  `node ${process.versions.node}, ${platform()} ${arch()}, ${cpus()[0]?.model ?? 'unknown cpu'} × ${cpus().length}`,
)
if (cores === null) console.log('one core only: server and load share it, the figures mean little')
if (onPostgres) console.log('state in PostgreSQL, which shares the core of the load')
const stopPostgres = onPostgres ? await keepStateInPostgres() : async () => {}
if (values.against !== undefined) await compareWith(values.against, words)
else
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (words.length > 0 && !words.some(word => name.includes(word))) continue
    console.log(`\n${name}`)
    await scenario()
  }
await stopPostgres()
