// Runs all vectors as a test and compares the failures with the list of those known not to pass. Only this test uses
// the list: the runner reports every failure.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { collectText } from '../support/child-processes.ts'
import { shareOf } from '../support/nightly.ts'

export const vectorFiles = ['evaluation', 'ingestion', 'import', 'wire-2026'].map(name =>
  pathOf(`./${name}-vectors.json`),
)
const expectedFailures = JSON.parse(readFileSync(pathOf('./expected-failures.json'), 'utf8')) as Record<
  string,
  string[]
>

/** Vectors that list only a part of the stored data; the others list all of it. */
const partialIds = ['person-118', 'person-119', 'person-133', 'person-136']

export function listsAll(id: string): boolean {
  return !partialIds.includes(id)
}

/**
 * Runs vectors on whole instances: the exchanges, which nothing else runs, all on SQLite, and a share of the others, each
 * engine another one. `npm test` runs those in memory, save those of continuity, which both stores have a contract for
 * (`tests/ports/hash-key-overrides.contract.ts`); `npm run vectors` runs all on either.
 * @param run runs the vectors of these ids. Resolves with what the runner printed.
 */
export function conformanceSuite(
  engine: 'SQLite' | 'PostgreSQL',
  skip: string | false,
  run: (ids: readonly string[]) => Promise<string>,
): void {
  const exchanges = vectorFiles.flatMap(path => idsIn(path, part => part === 'exchange_vectors'))
  const others = vectorFiles.flatMap(path => idsIn(path, part => part !== 'exchange_vectors'))
  const ids = [
    ...(engine === 'SQLite' ? exchanges : shareOf(exchanges, 20)),
    ...shareOf(others, 20, engine === 'SQLite' ? 0 : 1),
  ]
  describe(`the conformance test vectors with state in ${engine}`, { skip }, () => {
    let lines: string[]

    before(async () => {
      lines = (await run(ids)).trimEnd().split('\n')
    })

    it('are all run: the output lists exactly the ids in their files', () => {
      assert.ok(ids.length > 20)
      const reported = lines.slice(0, -1).map(line => /^(?:not )?ok (\S+?):?(?: |$)/.exec(line)![1]!)
      assert.deepEqual(reported.toSorted(), ids.toSorted())
    })

    it('pass, except known failures', () => {
      const known = new Set(Object.values(expectedFailures).flat())
      const failed = lines.filter(line => line.startsWith('not ok ')).filter(line => !known.has(idOf(line)))
      assert.deepEqual(failed, [])
    })

    it('fail if the list of known failures says so', () => {
      const failed = new Set(lines.filter(line => line.startsWith('not ok ')).map(idOf))
      const passing = Object.values(expectedFailures)
        .flat()
        .filter(id => ids.includes(id) && !failed.has(id))
      assert.deepEqual(passing, [], 'these pass now: take them off expected-failures.json')
    })

    it('are counted in the last line of the output', () => {
      const count = (start: string) => lines.filter(line => line.startsWith(start)).length
      assert.equal(lines.at(-1), `${count('ok ')} passed, ${count('not ok ')} failed`)
      assert.ok(count('ok ') > 0)
    })
  })
}

/** @param settings environment variables of the runner. @returns what it prints. */
export function runVectors(
  ids: readonly string[],
  settings: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const args = [
    '--disable-warning=ExperimentalWarning',
    pathOf('./run-vectors.ts'),
    ...vectorFiles,
    `--whole=^(?!(?:${partialIds.join('|')})$)`,
    `--only=^(?:${ids.join('|')})$`,
  ]
  const env = { ...process.env, ...settings }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  const output = collectText(child.stdout)
  return new Promise(resolve => child.once('close', () => resolve(output())))
}

/** The ids of the vectors in these parts of a file, read independently of the runner. */
function idsIn(path: string, isWanted: (part: string) => boolean): string[] {
  const parts = Object.entries<unknown>(JSON.parse(readFileSync(path, 'utf8')))
  const vectors = parts.flatMap(([part, list]) => (Array.isArray(list) && isWanted(part) ? list : []))
  return vectors.flatMap(({ id }: { id?: unknown }) => (typeof id === 'string' ? [id] : []))
}

function idOf(line: string): string {
  return /^not ok (\S+?): /.exec(line)![1]!
}

function pathOf(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url))
}
