// Exports of persons over a real front, opened by other people's tools.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { pythonWithPackages } from '../sdk/python-environment.ts'
import { allScopesKey, startManagement } from '../support/management-api.ts'
import { download } from '../support/raw-download.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aMapping, aPerson, created } from '../support/values.ts'

const texts = [
  'a,b',
  'say "hi"',
  'two\nlines',
  'cr\r\nlf',
  '=cmd|x',
  ' lead',
  'Привет',
  '日本語',
  '👩‍👩‍👧',
  "it's; --",
  '\\',
  '\u202eback',
]
const persons = texts.map((text, index) =>
  aPerson({
    uuid: `0195a000-0000-7000-8000-${String(index).padStart(12, '0')}`,
    properties: { text, [text]: { deep: [index, null, true] } },
  }),
)
const mappings = persons.flatMap((person, index) => [
  aMapping(person, texts[index]!),
  aMapping(person, `device ${index}`),
])
/** Uuid, distinct ids, properties and time of creation, as every tool has to read them. */
const expected = persons.map(({ uuid, properties, createdAtMs }, index) => [
  uuid,
  [texts[index]!, `device ${index}`].sort(),
  properties,
  createdAtMs,
])

async function saved(t: TestContext, format: string): Promise<string> {
  const api = await startManagement(t)
  await api.commit({ persons: persons.map(created), mappings: mappings.map(created) })
  const url = `${api.url}/api/projects/1/persons/export/?format=${format}`
  const { status, bytes, isComplete } = await download(url, { authorization: `Bearer ${allScopesKey}` })
  assert.deepEqual([status, isComplete], [200, true])
  const file = join(tempDir(t), `persons.${format}`)
  writeFileSync(file, bytes)
  return file
}

const options = {
  maxBuffer: 2 ** 24,
  encoding: 'utf8',
  env: { ...process.env, PYTHONIOENCODING: 'utf-8' },
} as const

function python(program: string, file: string): [string, string, string, number][] {
  const path = pythonWithPackages('duckdb-2.0.0', ['duckdb==2.0.0'])
  return JSON.parse(execFileSync(path, ['-c', program, file], options))
}

function assertWhole(rows: readonly (readonly [string, string, string, number])[]): void {
  const read = rows.map(([uuid, ids, properties, createdAtMs]) => [
    uuid,
    (JSON.parse(ids) as string[]).sort(),
    JSON.parse(properties),
    createdAtMs,
  ])
  assert.deepEqual(read.toReversed(), expected)
}

it('Python’s csv module reads an export of persons completely', async t => {
  const rows = python(
    `import csv, datetime, json, sys
ms = lambda text: round(datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp() * 1000)
with open(sys.argv[1], newline='', encoding='utf-8') as f:
    print(json.dumps([[r['uuid'], r['distinct_ids'], r['properties'], ms(r['created_at'])] for r in csv.DictReader(f, strict=True)]))`,
    await saved(t, 'csv'),
  )
  assertWhole(rows)
})

it('DuckDB reads an export of persons completely, as Parquet', async t => {
  const rows = python(
    `import duckdb, json, sys
print(json.dumps(duckdb.sql(f"select uuid, distinct_ids, properties, epoch_ms(created_at) from '{sys.argv[1]}'").fetchall()))`,
    await saved(t, 'parquet'),
  )
  assertWhole(rows)
})

it('jq reads an export of persons completely', async t => {
  const program = '[.uuid, (.distinct_ids | tojson), (.properties | tojson), .created_at]'
  const lines = execFileSync('jq', ['-c', program, await saved(t, 'jsonl')], options)
    .trimEnd()
    .split('\n')
  const rows = lines.map(line => JSON.parse(line) as [string, string, string, string])
  assertWhole(rows.map(([uuid, ids, properties, at]) => [uuid, ids, properties, Date.parse(at)]))
})
