// A run of all vectors as a test, held against the list of those that are known not to pass. The list is for this test
// alone: the runner reports every failure, whatever stands in it.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

export const vectorFiles = ['evaluation', 'ingestion', 'import'].map(name => pathOf(`./${name}-vectors.json`))
const expectedFailures = JSON.parse(readFileSync(pathOf('./expected-failures.json'), 'utf8')) as Record<
  string,
  string[]
>

/** Vectors whose lists of what is stored are parts of it: the others list all. */
const partialIds = ['person-118', 'person-119', 'person-133', 'person-136']

/**
 * @param run resolves with what the runner printed.
 * @param leftOut ids that it was told to leave out.
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

/** @returns what the runner prints. `settings`: environment variables of its own. */
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

/** Ids of the evaluation vectors without persons, groups, cohorts or settings of a project. */
export function definitionsAlone(): string[] {
  const { flag_vectors: flags, decoding_vectors: decoding } = JSON.parse(
    readFileSync(vectorFiles[0]!, 'utf8'),
  ) as Record<string, { id: string; stored?: object; project?: object }[]>
  return [...flags!, ...decoding!]
    .filter(({ stored, project }) => stored === undefined && project === undefined)
    .map(({ id }) => id)
}

/** Whatever the runner makes of a file: every list in it whose entries have ids. */
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
