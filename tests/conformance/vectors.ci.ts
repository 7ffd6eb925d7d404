import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { noPostgres, startPostgres } from '../support/postgres.ts'

// All vectors, held against the list of those that are known not to pass. The list is for this test alone: the runner
// reports every failure, whatever stands in it. Once with state in SQLite; once in PostgreSQL, where those are left to
// `npm run vectors` that ask definitions alone or are decided at the edge. Both runs go on side by side, since most of a vector is waiting for
// processes to start.

const files = ['evaluation', 'ingestion', 'import'].map(name => pathOf(`./${name}-vectors.json`))
const expectedFailures = JSON.parse(readFileSync(pathOf('./expected-failures.json'), 'utf8')) as Record<
  string,
  string[]
>

const skip = noPostgres()

conformance('SQLite', false, async () => runVectors([], { DATABASE_URL: undefined }))
conformance('PostgreSQL', skip, async () => {
  const postgres = await startPostgres()
  try {
    return await runVectors([`--only=^(?!(?:${[...definitionsAlone(), ...decidedAtTheEdge()].join('|')})$)`], {
      DATABASE_URL: postgres.url,
    })
  } finally {
    await postgres.stop()
  }
})

function conformance(engine: string, skipped: string | false, run: () => Promise<string>): void {
  const output = skipped === false ? run() : Promise.resolve('')
  output.catch(() => undefined) // told by the hook that waits for it
  describe(`the conformance vectors with state in ${engine}`, { skip: skipped }, () => {
    let lines: string[]

    before(async () => {
      lines = (await output).trimEnd().split('\n')
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

/** Ids of the evaluation vectors without persons, groups, cohorts or settings of a project. */
function definitionsAlone(): string[] {
  const { flag_vectors: flags, decoding_vectors: decoding } = JSON.parse(readFileSync(files[0]!, 'utf8')) as Record<
    string,
    { id: string; stored?: object; project?: object }[]
  >
  return [...flags!, ...decoding!]
    .filter(({ stored, project }) => stored === undefined && project === undefined)
    .map(({ id }) => id)
}

/** Ids of the ingestion vectors that are about a request and its answer. */
function decidedAtTheEdge(): string[] {
  const groups = new Set(['transport', 'shape', 'coerce', 'auth', 'timestamp', 'v1', 'replay', 'sink'])
  const { vectors } = JSON.parse(readFileSync(files[1]!, 'utf8')) as { vectors: { id: string; group: string }[] }
  return vectors.filter(({ group }) => groups.has(group)).map(({ id }) => id)
}

function runVectors(
  options: readonly string[],
  settings: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const args = ['--disable-warning=ExperimentalWarning', pathOf('./run-vectors.ts'), ...files, ...options]
  const env = { ...process.env, ...settings }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  return new Promise(resolve => child.once('close', () => resolve(output)))
}

function idOf(line: string): string {
  return /^not ok (\S+?): /.exec(line)![1]!
}

function pathOf(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url))
}
