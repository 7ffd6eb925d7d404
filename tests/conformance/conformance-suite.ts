// Runs all vectors as a test and compares the failures with the list of those known not to pass. Only this test uses
// the list: the runner reports every failure.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

export const vectorFiles = ['evaluation', 'ingestion', 'import', 'wire-2026'].map(name =>
  pathOf(`./${name}-vectors.json`),
)
const expectedFailures = JSON.parse(readFileSync(pathOf('./expected-failures.json'), 'utf8')) as Record<
  string,
  string[]
>

/** Vectors that list only a part of what is stored; the others list all of it. */
const partialIds = ['person-118', 'person-119', 'person-133', 'person-136']

export function listsAll(id: string): boolean {
  return !partialIds.includes(id)
}

/**
 * @param run resolves with what the runner printed.
 * @param leftOut ids that the runner has to leave out.
 */
export function conformanceSuite(
  engine: string,
  skip: string | false,
  run: () => Promise<string>,
  leftOut: readonly string[] = [],
): void {
  describe(`the conformance vectors with state in ${engine}`, { skip }, () => {
    let lines: string[]

    before(async () => {
      lines = (await run()).trimEnd().split('\n')
    })

    it('are all run, by the ids in their files', () => {
      const expected = vectorFiles.flatMap(idsIn).filter(id => !leftOut.includes(id))
      assert.ok(expected.length > 50)
      const reported = lines.slice(0, -1).map(line => /^(?:not )?ok (\S+?):?(?: |$)/.exec(line)![1]!)
      assert.deepEqual(reported.toSorted(), expected.toSorted())
    })

    it('pass, save those that are known not to', () => {
      const known = new Set(Object.values(expectedFailures).flat())
      const failed = lines.filter(line => line.startsWith('not ok ')).filter(line => !known.has(idOf(line)))
      assert.deepEqual(failed, [])
    })

    it('fail where the list of known failures says so', () => {
      const failed = new Set(lines.filter(line => line.startsWith('not ok ')).map(idOf))
      const passing = Object.values(expectedFailures)
        .flat()
        .filter(id => !failed.has(id))
      assert.deepEqual(passing, [], 'these pass now: take them off expected-failures.json')
    })

    it('are counted in the last line', () => {
      const count = (start: string) => lines.filter(line => line.startsWith(start)).length
      assert.equal(lines.at(-1), `${count('ok ')} passed, ${count('not ok ')} failed`)
      assert.ok(count('ok ') > 0)
    })
  })
}

/** @param settings environment variables of the runner. @returns what it prints. */
export function runVectors(
  options: readonly string[],
  settings: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const args = [
    '--disable-warning=ExperimentalWarning',
    pathOf('./run-vectors.ts'),
    ...vectorFiles,
    `--whole=^(?!(?:${partialIds.join('|')})$)`,
    ...options,
  ]
  const env = { ...process.env, ...settings }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  return new Promise(resolve => child.once('close', () => resolve(output)))
}

/** @returns the option of the runner that leaves these vectors out. */
export function without(ids: readonly string[]): string {
  return `--only=^(?!(?:${ids.join('|')})$)`
}

/** Ids of the vectors of evaluations without persons, groups, cohorts or settings of a project. */
export function definitionsAlone(): string[] {
  type Vectors = readonly { id: string; stored?: object; project?: object; team?: object }[]
  return [vectorFiles[0]!, vectorFiles[3]!].flatMap(path => {
    const file = JSON.parse(readFileSync(path, 'utf8')) as Record<string, Vectors>
    return ['flag_vectors', 'decoding_vectors', 'response_vectors']
      .flatMap(part => file[part] ?? [])
      .filter(({ stored, project, team }) => stored === undefined && project === undefined && team === undefined)
      .map(({ id }) => id)
  })
}

/** Ids of the ingestion vectors that are about a request and its answer: the store behind them makes no difference. */
export function decidedAtTheEdge(): string[] {
  const groups = new Set(['transport', 'shape', 'coerce', 'auth', 'timestamp', 'v1', 'replay', 'sink'])
  return ingestionVectors().flatMap(({ id, group }) => (groups.has(group) ? [id] : []))
}

/** Ids of the import vectors: each is converted by a command that needs no instance, and so no state. */
export function convertedByCommand(): string[] {
  const { vectors } = JSON.parse(readFileSync(vectorFiles[2]!, 'utf8')) as { vectors: { id: string }[] }
  return vectors.map(({ id }) => id)
}

/**
 * Halves the vectors that need a state, so that each runs on one kind of it in CI. `npm test` runs all of them in memory, save
 * those of continuity, which both stores have a contract for (`tests/ports/hash-key-overrides.contract.ts`). `npm run
 * vectors` runs all on either.
 */
export function statefulOn(): { readonly sqlite: string[]; readonly postgres: string[] } {
  const alone = new Set([...definitionsAlone(), ...decidedAtTheEdge()])
  const evaluation = JSON.parse(readFileSync(vectorFiles[0]!, 'utf8')) as Record<string, { id: string }[]>
  const { flag_vectors, decoding_vectors, response_vectors, continuity_write_vectors } = evaluation
  const wire = JSON.parse(readFileSync(vectorFiles[3]!, 'utf8')) as Record<string, { id: string }[]>
  const { flag_vectors: wireFlags, response_vectors: wireResponses, exchange_vectors: exchanges } = wire
  const lists = [
    ...[flag_vectors, decoding_vectors, response_vectors, continuity_write_vectors, ingestionVectors()],
    ...[wireFlags ?? [], wireResponses ?? [], exchanges ?? []],
  ]
  const stateful = lists.flatMap(list => list!.filter(({ id }) => !alone.has(id)))
  const half = (remainder: number) => stateful.flatMap(({ id }, index) => (index % 2 === remainder ? [id] : []))
  return { sqlite: half(0), postgres: half(1) }
}

function ingestionVectors(): { id: string; group: string }[] {
  return (JSON.parse(readFileSync(vectorFiles[1]!, 'utf8')) as { vectors: { id: string; group: string }[] }).vectors
}

/** The ids of all vectors in a file, read independently of the runner. */
function idsIn(path: string): string[] {
  const lists = Object.values(JSON.parse(readFileSync(path, 'utf8'))).filter(Array.isArray)
  return lists.flat().flatMap(({ id }: { id?: unknown }) => (typeof id === 'string' ? [id] : []))
}

function idOf(line: string): string {
  return /^not ok (\S+?): /.exec(line)![1]!
}

function pathOf(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url))
}
