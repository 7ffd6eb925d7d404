// Runs a named set of tests on node:test and ends with a summary. Sets: `unit` (what `npm test` runs) and `ci` (longer
// tests that CI adds). `-- PATH…` runs just those files. Under CI=1 a skipped test fails the run.

import { globSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { availableParallelism, constants, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { endOutlivedChildren, endTestFiles, isAnyLeft, type Outlived, outliveGraceMs } from './outlived-children.ts'

interface TestSet {
  readonly patterns: readonly string[]
  /**
   * The files of one entry share a process, since a short test file spends most of its time starting Node and repeating
   * the same imports. Tests that start whole instances are left out, so that the end of a process affects only one
   * file.
   */
  readonly together: Readonly<Record<string, readonly string[]>>
  /**
   * Files that start before all others: those that take longest, which at the end would run on alone, and beside one that
   * works throughout those that mostly wait.
   */
  readonly first: readonly string[]
  readonly concurrency: number
  /** Time limit for each test. If no test ends for somewhat longer than that, the remaining files are killed. */
  readonly timeoutMs: number
}

const sets: Record<string, TestSet> = {
  unit: {
    patterns: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    together: {
      core: ['src/{core,wire}/**/*.test.ts'],
      src: ['src/*.test.ts', 'src/!(core|wire)/**/*.test.ts'],
      requests: ['tests/{capture,http}/*.test.ts'],
      decide: ['tests/decide/*.test.ts'],
      management: ['tests/management/*.test.ts'],
      stores: ['tests/{ports,persons}/*.test.ts'],
      vectors: ['tests/{conformance,tidy}/*.test.ts'],
    },
    first: [],
    concurrency: threeForTwo(),
    timeoutMs: 240_000,
  },
  ci: {
    patterns: ['tests/**/*.ci.ts'],
    together: {},
    first: [
      'tests/import/kill-sources.ci.ts',
      ...['tests/postgres/one-log.ci.ts', 'tests/postgres/stop.ci.ts'],
      ...['tests/import/fetch-kill.ci.ts', 'tests/import/import-jobs.ci.ts'],
      ...['tests/conformance/vectors.ci.ts', 'tests/conformance/vectors-postgres.ci.ts'],
    ],
    concurrency: threeForTwo(),
    timeoutMs: 1_200_000,
  },
}
/** Enough for several installations and engines at once, with as much again to spare. */
const inMemoryBytesMin = 8 * 2 ** 30

const [setName = 'unit', ...named] = process.argv.slice(2)
const set = sets[setName]
if (set === undefined) {
  console.error(`There is no test set "${setName}". Sets: ${Object.keys(sets).join(', ')}.`)
  process.exit(2)
}
const foldersIn = folderForTests()
const folder = mkdtempSync(join(foldersIn, 'pennon-test-run-'))
const timeoutMs = Number(process.env.TESTS_TIMEOUT_MS ?? set.timeoutMs)
const outlived: Outlived[] = []
let progressAtMs = performance.now()
const watch = setInterval(() => {
  // node:test waits for a file's output to end, which a child may hold open.
  outlived.push(...endOutlivedChildren(folder, outliveGraceMs))
  // node:test times out a test from within its process, which fails if the process never yields.
  if (performance.now() - progressAtMs < timeoutMs + 2 * outliveGraceMs) return
  for (const file of endTestFiles(folder)) console.error(`${file}: killed, since no test has ended for too long.`)
  progressAtMs = performance.now()
}, 1_000)
const events = run({
  files: named.length > 0 ? named.map(file => resolve(file)) : processesOf(set),
  concurrency: set.concurrency,
  timeout: timeoutMs,
  execArgv: [
    '--disable-warning=ExperimentalWarning',
    `--import=${new URL('./outlived-tests.ts', import.meta.url).href}`,
  ],
  env: {
    ...process.env,
    NODE_ENV: 'test',
    TMPDIR: foldersIn,
    TESTS_RUN: folder,
    // As `bin/compile-cache.js` does for Pennon itself: types are stripped once, not in every process.
    NODE_COMPILE_CACHE:
      process.env.NODE_COMPILE_CACHE ?? fileURLToPath(new URL('../node_modules/.cache/pennon', import.meta.url)),
  },
})
events.on('test:complete', () => {
  progressAtMs = performance.now()
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, async () => {
    endTestFiles(folder)
    await untilNoneIsLeft(0)
    rmSync(folder, { recursive: true, force: true })
    process.exit(128 + constants.signals[signal])
  })
const outcome = { isSuccess: false, skippedCount: 0 }
events.on('test:summary', ({ file, success, counts }) => {
  if (file === undefined) Object.assign(outcome, { isSuccess: success, skippedCount: counts.skipped }) // of the whole run
})
for await (const text of events.compose(new spec())) process.stdout.write(text)
clearInterval(watch)
outlived.push(...(await untilNoneIsLeft(outliveGraceMs)))
for (const { file, pid, command } of outlived)
  console.error(`${file}: its tests are over, but process ${pid} that they started went on and was killed: ${command}`)
rmSync(folder, { recursive: true, force: true })
const isSkipFailure = Boolean(process.env.CI) && outcome.skippedCount > 0
if (isSkipFailure) console.error(`${outcome.skippedCount} skipped tests: under CI a skip is a failure.`)
process.exit(outcome.isSuccess && outlived.length === 0 && !isSkipFailure ? 0 : 1)

/**
 * In memory if there is plenty: a test cannot cut the power, so a sync to disk proves nothing, yet it takes a third of
 * the time of tests that append to logs. A TMPDIR that is set is kept.
 */
function folderForTests(): string {
  const inMemory = '/dev/shm'
  if (process.env.TMPDIR !== undefined || process.platform !== 'linux') return tmpdir()
  try {
    const { bavail, bsize } = statfsSync(inMemory)
    return bavail * bsize >= inMemoryBytesMin ? inMemory : tmpdir()
  } catch {
    return tmpdir() // a system without it
  }
}

/** Test files at once: they mostly wait, so that three keep two processors busy. */
function threeForTwo(): number {
  return Math.max(3, Math.ceil(1.5 * availableParallelism()))
}

/** Waits for children to end with their parents, which takes a moment, and kills the rest after the grace. */
async function untilNoneIsLeft(graceMs: number): Promise<Outlived[]> {
  const ended: Outlived[] = []
  while (isAnyLeft(folder)) {
    ended.push(...endOutlivedChildren(folder, graceMs))
    await sleep(50)
  }
  return ended
}

/**
 * One file for each process: a test file, or a generated one that loads the files that run together. It wraps each of
 * these in a suite, so that a file's top-level hooks apply only to its own tests.
 */
function processesOf({ patterns, together, first }: TestSet): string[] {
  const alone = new Set(globSync(patterns))
  const shared = Object.entries(together).map(([name, shares]) => {
    const files = globSync(shares).filter(file => alone.delete(file))
    const path = join(folder, `${name}.mjs`)
    const suites = files.sort().map(file => `suite('${file}', () => import('${pathToFileURL(resolve(file)).href}'))\n`)
    writeFileSync(path, `import { suite } from 'node:test'\n${suites.join('')}`)
    return path
  })
  // One that is listed and no longer there fails the run.
  return [...new Set([...first, ...shared, ...alone])].map(file => resolve(file))
}
