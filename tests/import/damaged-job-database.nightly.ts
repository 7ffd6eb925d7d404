import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import Database from 'better-sqlite3'
import { ImportCommands } from '../support/import-command.ts'
import { type Pennon, startPennon, testPersonalKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const line = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', device: 'd-1', at: '2024-05-01T12:00:00Z' })}\n`

describe('a job whose events differ from the approved ones', () => {
  let pennon: Pennon
  before(async () => {
    pennon = await startPennon()
  })
  after(() => pennon.stop())

  it('a damaged part stops sending; once it is rebuilt the import continues under the same approval', async t => {
    const commands = new ImportCommands(tempDir(t), { PENNON_PERSONAL_KEY: testPersonalKey })
    await commands.approved(pennon, [commands.file('raw.jsonl', line)])
    const path = join(commands.job, 'job.db')
    const database = new Database(path)
    const { changes } = database.prepare("UPDATE part SET lines = x'00' WHERE id = 'links/0'").run()
    database.close()
    assert.equal(changes, 1)
    const refused = await commands.call('run')
    assert.equal(refused.exitCode, 2, refused.stderr)
    assert.ok(
      refused.stderr.includes(`part links/0 in ${path} has changed since it was written. Delete ${path} and run`),
    )
    rmSync(path)
    const again = await commands.call('run')
    assert.equal(again.exitCode, 0, again.stderr)
  })
})
