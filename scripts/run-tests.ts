// Runs a named set of tests on node:test and closes with its summary. Sets: `unit` (what `npm test` runs), `ci` (longer
// ones that CI adds). `-- PATH…` runs just those files. Under CI=1 a skipped test fails the run.

import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { endOutlivedChildren, outliveGraceMs as graceMs, isAnyLeft, type Outlived } from './outlived-children.ts'

interface TestSet {
  readonly patterns: readonly string[]
  /**
   * Files of one entry share a process: most of a short test file is Node's start and the same imports again. Left out
   * is what starts whole instances, so that an end of the process is the end of one file's alone.
   */
  readonly together: Readonly<Record<string, readonly string[]>>
  readonly concurrency: number
  /** Bounds both a process with all its files and each test. */
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
    concurrency: 2,
    timeoutMs: 240_000,
  },
  // They wait much of their time: three at once keep two processors busy.
  ci: { patterns: ['tests/**/*.ci.ts'], together: {}, concurrency: 3, timeoutMs: 1_200_000 },
}
/** Several installations and engines at once, and as much again to spare. */
const inMemoryBytesMin = 8 * 2 ** 30
/** Hooks outside of every suite would be those of all files of a process. */
const hooksOfTheFile = /^(?:before|after|beforeEach|afterEach)\(/m

const [setName = 'unit', ...named] = process.argv.slice(2)
const set = sets[setName]
if (set === undefined) {
  console.error(`There is no test set "${setName}". Sets: ${Object.keys(sets).join(', ')}.`)
  process.exit(2)
}
const foldersIn = folderForTests()
const folder = mkdtempSync(join(foldersIn, 'pennon-test-run-'))
const args = [
  '--disable-warning=ExperimentalWarning',
  '--test',
  `--test-concurrency=${set.concurrency}`,
  `--test-timeout=${set.timeoutMs}`,
  '--test-reporter=spec',
  `--import=${new URL('./outlived-tests.ts', import.meta.url).href}`,
  ...(named.length > 0 ? named : processesOf(set)),
]
const child = spawn(process.execPath, args, {
  stdio: ['ignore', 'pipe', 'inherit'],
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
let tail = ''
child.stdout.on('data', (chunk: Buffer) => {
  process.stdout.write(chunk)
  tail = (tail + chunk.toString()).slice(-4096)
})
const outlived: Outlived[] = []
// While node:test waits for the output of a file, which a child of it may hold open.
const watch = setInterval(() => outlived.push(...endOutlivedChildren(folder, graceMs)), 1_000)
child.on('close', async code => {
  clearInterval(watch)
  outlived.push(...(await untilNoneIsLeft()))
  for (const { file, pid, command } of outlived)
    console.error(
      `${file}: its tests are over, but process ${pid} that they started went on and was killed: ${command}`,
    )
  rmSync(folder, { recursive: true, force: true })
  const skipped = Number(/skipped (\d+)/.exec(tail)?.[1] ?? 0)
  if (process.env.CI && skipped > 0) {
    console.error(`${skipped} skipped tests: under CI a skip is a failure.`)
    process.exit(1)
  }
  process.exit(outlived.length > 0 ? 1 : (code ?? 1))
})

/**
 * In memory where there is plenty of it: a test cannot cut the power, so a sync to a disk shows nothing and takes a
 * third of the time of what appends to logs. A TMPDIR that was chosen is kept.
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

/** What ends with its parent takes a moment; after the grace nothing is left. */
async function untilNoneIsLeft(): Promise<Outlived[]> {
  const ended: Outlived[] = []
  while (isAnyLeft(folder)) {
    ended.push(...endOutlivedChildren(folder, graceMs))
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  return ended
}

/** A file for each process: one that imports those that run together, or a test file itself. */
function processesOf({ patterns, together }: TestSet): string[] {
  const alone = new Set(globSync(patterns))
  const shared = Object.entries(together).map(([name, shares]) => {
    const files = globSync(shares)
      .filter(file => alone.has(file) && !hooksOfTheFile.test(readFileSync(file, 'utf8')))
      .sort()
    for (const file of files) alone.delete(file)
    const path = join(folder, `${name}.mjs`)
    writeFileSync(path, files.map(file => `import '${pathToFileURL(file).href}'\n`).join(''))
    return path
  })
  return [...shared, ...alone]
}
