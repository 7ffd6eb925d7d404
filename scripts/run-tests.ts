// Runs a named set of tests on node:test and closes with its summary. Sets: `unit` (what `npm test` runs), `ci` (longer
// ones that CI adds). `-- PATH…` runs just those files. Under CI=1 a skipped test fails the run.

import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'

const sets: Record<string, { patterns: string[]; concurrency: number; timeoutMs: number }> = {
  unit: { patterns: ['src/**/*.test.ts', 'tests/**/*.test.ts'], concurrency: 2, timeoutMs: 120_000 },
  ci: { patterns: ['tests/**/*.ci.ts'], concurrency: 1, timeoutMs: 900_000 },
}

const [setName = 'unit', ...named] = process.argv.slice(2)
const set = sets[setName]
if (set === undefined) {
  console.error(`There is no test set "${setName}". Sets: ${Object.keys(sets).join(', ')}.`)
  process.exit(2)
}
const files = named.length > 0 ? named : globSync(set.patterns).sort()
const args = [
  '--disable-warning=ExperimentalWarning',
  '--test',
  `--test-concurrency=${set.concurrency}`,
  `--test-timeout=${set.timeoutMs}`,
  '--test-reporter=spec',
  ...files,
]
const child = spawn(process.execPath, args, {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, NODE_ENV: 'test' },
})
let tail = ''
child.stdout.on('data', (chunk: Buffer) => {
  process.stdout.write(chunk)
  tail = (tail + chunk.toString()).slice(-4096)
})
child.on('close', code => {
  const skipped = Number(/skipped (\d+)/.exec(tail)?.[1] ?? 0)
  if (process.env.CI && skipped > 0) {
    console.error(`${skipped} skipped tests: under CI a skip is a failure.`)
    process.exit(1)
  }
  process.exit(code ?? 1)
})
