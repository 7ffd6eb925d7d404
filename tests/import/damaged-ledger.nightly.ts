import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import Database from 'better-sqlite3'
import { ImportCommands } from '../support/import-command.ts'
import { type Pennon, startPennon, testPersonalKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const line = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', device: 'd-1', at: '2024-05-01T12:00:00Z' })}\n`

describe('a job whose ledger differs from the approved one', () => {
  let pennon: Pennon
  before(async () => {
    pennon = await startPennon()
  })
  after(() => pennon.stop())

  it('a damaged ledger stops sending; after another scan the import continues under the same approval', async t => {
    const commands = new ImportCommands(tempDir(t), { PENNON_PERSONAL_KEY: testPersonalKey })
    await commands.approved(pennon, [commands.file('raw.jsonl', line)])
    renameUser(commands)
    const refused = await commands.call('run')
    assert.equal(refused.exitCode, 2, refused.stderr)
    const path = join(commands.job, 'ledger.db')
    assert.ok(refused.stderr.includes(`pennon: ${path} is damaged. Delete it and run again: it is rebuilt`))
    rmSync(path)
    const again = await commands.call('run')
    assert.equal(again.exitCode, 0, again.stderr)
  })
})

function renameUser({ job }: ImportCommands): void {
  const ledger = new Database(join(job, 'ledger.db'))
  const { changes } = ledger.prepare("UPDATE generated SET event = replace(event, 'u-1', 'u-3')").run()
  ledger.close()
  assert.equal(changes, 1)
}
