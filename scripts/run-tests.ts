// Runs a named set of tests on node:test and ends with a summary. Sets: `unit` (what `npm test` runs), `ci` (what CI adds:
// longer tests, and a share of the exhaustive ones, drawn by SEED) and `nightly` (all tests with all their cases).
// `-- PATH…` runs just those files; `--coverage` prints how much of `src` the tests ran. Under CI=1 a skipped test fails the
// run. A failed file runs a second time, alone, at the end: if it passes then, it is printed as `flaky` and does not fail
// the run.

import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { availableParallelism, constants, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { type EventData, run } from 'node:test'
import { spec } from 'node:test/reporters'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { shareOf } from '../tests/support/nightly.ts'
import {
  cpuSuffix,
  endOutlivedChildren,
  endTestFiles,
  isAnyChildRunning,
  type Outlived,
  outliveGraceMs,
} from './outlived-children.ts'

interface TestSet {
  readonly patterns: readonly string[]
  /** Exhaustive tests: each run takes one in `parts` of their files, and `parts` runs cover all. */
  readonly share?: { readonly patterns: readonly string[]; readonly parts: number }
  /**
   * The files of one entry share a process, since a short test file spends most of its time on starting Node and repeating
   * the same imports. Tests that start whole instances are left out, so that the end of a process affects only one file.
   */
  readonly together: Readonly<Record<string, readonly string[]>>
  /**
   * Files that start before all others: the longest, which would otherwise run alone at the end, paired so that some of them
   * mostly wait while another works.
   */
  readonly first: readonly string[]
  /** Files at once for each processor: tests mostly wait, but whole instances also need memory. */
  readonly filesPerProcessor: number
  /** Time limit for each test. If no test ends for somewhat longer than that, the remaining files are killed. */
  readonly timeoutMs: number
}

const unitTests = ['{src,web/src}/**/*.test.ts', 'tests/**/*.test.ts']
const exhaustiveTests = ['tests/**/*.nightly.ts']
const together = {
  core: ['src/{core,wire}/**/*.test.ts', 'web/src/**/*.test.ts'],
  src: ['src/*.test.ts', 'src/!(core|wire)/**/*.test.ts'],
  requests: ['tests/{capture,http}/*.test.ts'],
  decide: ['tests/decide/*.test.ts'],
  management: ['tests/management/*.test.ts'],
  // publish-and-undo takes longer than all the others.
  imports: ['tests/import/!(publish-and-undo).test.ts'],
  insights: ['tests/insights/*.test.ts'],
  stores: ['tests/{ports,persons}/*.test.ts'],
  vectors: ['tests/{conformance,tidy}/*.test.ts'],
}
const longest = ['import/kill-sources', 'ports/postgres-stores', 'conformance/vectors'].map(
  name => `tests/${name}.ci.ts`,
)
const sets: Record<string, TestSet> = {
  unit: { patterns: unitTests, together, first: [], filesPerProcessor: 2, timeoutMs: 240_000 },
  ci: {
    patterns: ['tests/**/*.ci.ts'],
    share: { patterns: exhaustiveTests, parts: 5 },
    together: {},
    first: longest,
    filesPerProcessor: 1.5,
    timeoutMs: 1_200_000,
  },
  nightly: {
    patterns: [...unitTests, 'tests/**/*.ci.ts', ...exhaustiveTests],
    together,
    first: longest,
    filesPerProcessor: 1.5,
    timeoutMs: 1_200_000,
  },
}
/** Twice what several installations and engines at once need. */
const inMemoryBytesMin = 8 * 2 ** 30
/** How many of the slowest files a whole run lists at its end. */
const slowestListed = 15
const leastCoveredListed = 10
/** The most failed files that run again. More probably have a common cause, which is no flakiness. */
const rerunFilesMax = 5

const [setName = 'unit', ...options] = process.argv.slice(2)
const isCoverage = options.includes('--coverage')
const named = options.filter(option => option !== '--coverage')
const set = sets[setName]
if (set === undefined) {
  console.error(`There is no test set "${setName}". Sets: ${Object.keys(sets).join(', ')}.`)
  process.exit(2)
}
// Every process of the run uses the same seed.
process.env.SEED ??= String(Math.floor(Math.random() * 2 ** 31))
if (setName === 'nightly') process.env.TESTS_NIGHTLY = '1'
const foldersIn = folderForTests()
const folder = mkdtempSync(join(foldersIn, 'pennon-test-run-'))
const timeoutMs = Number(process.env.TESTS_TIMEOUT_MS ?? set.timeoutMs)
let progressAtMs = performance.now()
let coverage: EventData.TestCoverage['summary'] | undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, async () => {
    endTestFiles(folder)
    await waitForChildren(0)
    rmSync(folder, { recursive: true, force: true })
    process.exit(128 + constants.signals[signal])
  })

const whole = await runFiles(
  named.length > 0 ? named.map(file => resolve(file)) : planProcesses(set),
  Math.max(3, Math.ceil(set.filesPerProcessor * availableParallelism())),
)
// A user who names files wants to see the first failure.
const isRerun = whole.failed.size <= rerunFilesMax && (named.length === 0 || Boolean(process.env.CI))
const flaky: string[] = []
for (const file of isRerun ? whole.failed : []) {
  console.log(`\nOnce more, alone: ${relative('.', file)}`)
  if ((await runFiles([file], 1)).failed.size === 0) flaky.push(file)
}
const cpuMs = cpuMsByFile()
rmSync(folder, { recursive: true, force: true })
if (named.length === 0) {
  printSlowest(whole.tookMs, cpuMs)
  console.log(`SEED=${process.env.SEED} draws the same cases again.`)
}
if (coverage !== undefined) printCoverage(coverage)
for (const file of flaky) console.log(`flaky: ${relative('.', file)}`)
if (flaky.length > 0) console.log(`${flaky.length} flaky: failed beside the others, passed alone. Each is a defect.`)
const isSkipFailure = Boolean(process.env.CI) && whole.skippedCount > 0
if (isSkipFailure) console.error(`${whole.skippedCount} skipped tests: under CI a skip is a failure.`)
process.exit(whole.failed.size > flaky.length || isSkipFailure ? 1 : 0)

interface Outcome {
  /** Paths of the files that failed. */
  readonly failed: Set<string>
  readonly skippedCount: number
  /** Wall-clock time of each process, by the path of its file. */
  readonly tookMs: ReadonlyMap<string, number>
}

/** Runs test files and prints what they report. */
async function runFiles(files: readonly string[], concurrency: number): Promise<Outcome> {
  const failed = new Set<string>()
  const tookMs = new Map<string, number>()
  const outlived: Outlived[] = []
  let skippedCount = 0
  progressAtMs = performance.now()
  const watch = setInterval(() => {
    // node:test waits for a file's output to end, which a child may hold open.
    outlived.push(...endOutlivedChildren(folder, outliveGraceMs))
    // node:test times out a test from within its process, which fails if the process never yields.
    if (performance.now() - progressAtMs < timeoutMs + 2 * outliveGraceMs) return
    for (const file of endTestFiles(folder)) console.error(`${file}: killed, since no test has ended for too long.`)
    progressAtMs = performance.now()
  }, 1_000)
  const events = run({
    files: [...files],
    concurrency,
    timeout: timeoutMs,
    coverage: isCoverage,
    coverageIncludeGlobs: ['src/**/*.ts'],
    coverageExcludeGlobs: ['**/*.test.ts'],
    execArgv: [
      '--disable-warning=ExperimentalWarning',
      ...['../bin/preload.js', './untracked-promises.ts', './outlived-tests.ts'].map(
        path => `--import=${new URL(path, import.meta.url).href}`,
      ),
    ],
    env: {
      ...process.env,
      NODE_ENV: 'test',
      TMPDIR: foldersIn,
      TESTS_RUN: folder,
      // As `bin/preload.js` does for Pennon itself: types are stripped once, not in every process.
      NODE_COMPILE_CACHE:
        process.env.NODE_COMPILE_CACHE ?? fileURLToPath(new URL('../node_modules/.cache/pennon', import.meta.url)),
    },
  })
  events.on('test:coverage', ({ summary }) => {
    coverage = summary
  })
  events.on('test:complete', () => {
    progressAtMs = performance.now()
  })
  events.on('test:fail', ({ name, nesting }) => {
    // A file that fails to load is reported under its path, and so is the suite of a file that runs together with others.
    if (nesting === 0 && existsSync(name)) failed.add(resolve(name))
  })
  events.on('test:summary', ({ file, success, counts, duration_ms }) => {
    if (file !== undefined) tookMs.set(file, duration_ms)
    if (file === undefined) skippedCount = counts.skipped // of the whole run
    if (success) return
    if (file === undefined && failed.size === 0) for (const each of files) failed.add(each)
    if (file !== undefined && !file.startsWith(folder)) failed.add(resolve(file))
  })
  for await (const text of events.filter(({ type }) => type !== 'test:coverage').compose(new spec()))
    process.stdout.write(text)
  clearInterval(watch)
  outlived.push(...(await waitForChildren(outliveGraceMs)))
  for (const { file, pid, command } of outlived) {
    console.error(
      `${file}: its tests have ended, but process ${pid} that they started kept running and was killed: ${command}`,
    )
    failed.add(resolve(file))
  }
  return { failed, skippedCount, tookMs }
}

/** Prints the files that took most CPU time, with their wall-clock time beside others. */
function printSlowest(tookMs: ReadonlyMap<string, number>, cpuMs: ReadonlyMap<string, number>): void {
  const costOf = (file: string) => cpuMs.get(file) ?? 0
  const seconds = (ms: number) => (ms / 1_000).toFixed(1).padStart(6)
  const costliest = [...tookMs].sort(
    ([left, leftMs], [right, rightMs]) => costOf(right) - costOf(left) || rightMs - leftMs,
  )
  console.log('Files that took most, in seconds of CPU and of the clock:')
  for (const [file, ms] of costliest.slice(0, slowestListed))
    console.log(`  ${seconds(costOf(file))} ${seconds(ms)}  ${relative('.', file)}`)
}

/** Prints how much of `src` the tests run, and the least covered files; node:test would list all of them. */
function printCoverage({ totals, files, workingDirectory }: EventData.TestCoverage['summary']): void {
  const percent = (part: number) => `${part.toFixed(1).padStart(5)} %`
  const [lines, branches, functions] = [
    totals.coveredLinePercent,
    totals.coveredBranchPercent,
    totals.coveredFunctionPercent,
  ]
  console.log(
    `Coverage: ${percent(lines)} of lines, ${percent(branches)} of branches, ${percent(functions)} of functions`,
  )
  const least = files.toSorted((left, right) => left.coveredLinePercent - right.coveredLinePercent)
  for (const { path, coveredLinePercent } of least.slice(0, leastCoveredListed))
    console.log(`  ${percent(coveredLinePercent)}  ${relative(workingDirectory, path)}`)
  const loaded = new Set(files.map(({ path }) => path))
  const unloaded = globSync('src/**/*.ts', { exclude: ['**/*.test.ts'] }).filter(path => !loaded.has(resolve(path)))
  if (unloaded.length > 0)
    console.log(`  ${unloaded.length} files were loaded by no test: ${unloaded.slice(0, leastCoveredListed).join(' ')}`)
}

/** CPU time of each test file's processes in ms, if the system provides it. */
function cpuMsByFile(): Map<string, number> {
  const byFile = new Map<string, number>()
  for (const name of globSync(`*${cpuSuffix}`, { cwd: folder })) {
    const [, ms, file] = /^(\d+) (.*)$/.exec(readFileSync(join(folder, name), 'utf8'))!
    byFile.set(file!, (byFile.get(file!) ?? 0) + Number(ms))
  }
  return byFile
}

/**
 * In memory if there is plenty: a test cannot cut the power, so a sync to disk proves nothing, yet takes a third of the time
 * of tests that append to logs. A TMPDIR in the environment is kept.
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

/** Waits for children to end with their parents, which takes a moment, and kills the rest after the grace. */
async function waitForChildren(graceMs: number): Promise<Outlived[]> {
  const ended: Outlived[] = []
  while (isAnyChildRunning(folder)) {
    ended.push(...endOutlivedChildren(folder, graceMs))
    await sleep(50)
  }
  return ended
}

/**
 * One file for each process: a test file, or a generated one that loads the files that run together. It wraps each of
 * these in a suite, so that a file's top-level hooks apply only to its own tests.
 */
function planProcesses({ patterns, share, together, first }: TestSet): string[] {
  const alone = new Set([...globSync(patterns), ...shareOf(globSync(share?.patterns ?? []).sort(), share?.parts ?? 1)])
  const shared = Object.entries(together).map(([name, members]) => {
    const files = globSync(members).filter(file => alone.delete(file))
    const path = join(folder, `${name}.mjs`)
    const suites = files.sort().map(file => `suite('${file}', () => import('${pathToFileURL(resolve(file)).href}'))\n`)
    writeFileSync(path, `import { suite } from 'node:test'\n${suites.join('')}`)
    return path
  })
  // A listed file that no longer exists fails the run.
  return [...new Set([...first, ...shared, ...alone])].map(file => resolve(file))
}
