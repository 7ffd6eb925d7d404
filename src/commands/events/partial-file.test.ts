import assert from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { createPartialFile, partialPath, readExportRequest, writeExportRequest } from './partial-file.ts'

it('starting an export suggests --resume for an existing partial file only if its format allows that', async t => {
  for (const [format, advice] of [
    ['jsonl', /has the rows received so far\. Use --resume to continue, or --force to start again\.$/],
    ['parquet', /has the rows received so far\. Use --force to start again\.$/],
  ] as const) {
    const file = join(tempDir(t), `events.${format}`)
    writeFileSync(partialPath(file), 'rows')
    await assert.rejects(createPartialFile(file, { format }, false), advice)
    await (await createPartialFile(file, { format }, true)).handle.close()
    assert.ok(existsSync(partialPath(file)))
  }
})

it('the stored options of an export are replaced atomically', async t => {
  const folder = tempDir(t)
  const file = join(folder, 'events.csv')
  writeFileSync(partialPath(file), '')
  const request = { instance: 'http://host', project: '1', format: 'csv', query: {}, limit: null } as const
  await writeExportRequest(file, request)
  // Left by an interrupted write.
  writeFileSync(`${file}.part.json.next`, '{')
  await writeExportRequest(file, { ...request, project: '2' })
  assert.equal(readExportRequest(file).project, '2')
  assert.deepEqual(readdirSync(folder).toSorted(), ['events.csv.part', 'events.csv.part.json'])
})
