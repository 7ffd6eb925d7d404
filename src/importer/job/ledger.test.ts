import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import Database from 'better-sqlite3'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { JobPaused } from './job-paused.ts'
import { checkLedger, JobLedger, LedgerDamage } from './ledger.ts'

it('a fact reads the same before and after the ledger is reopened', t => {
  const path = join(tempDir(t), 'ledger.db')
  const found = (ledger: JobLedger) => ['cut \ud83c', 'whole 🎈'].map(key => ledger.findFact('alias', key))
  const ledger = new JobLedger(path)
  ledger.begin()
  assert.deepEqual(found(ledger), [null, null])
  ledger.putFact({ kind: 'alias', key: 'cut \ud83c', value: 'user \udf88' })
  ledger.putFact({ kind: 'alias', key: 'whole 🎈', value: 'user 🎈' })
  const before = found(ledger)
  ledger.commit()
  ledger.close()
  const again = new JobLedger(path)
  assert.deepEqual(found(again), before)
  assert.deepEqual(before, ['user \ufffd', 'user 🎈'])
  again.close()
})

const { signal } = new AbortController()

it('a change to a row of any table changes the checksum of the ledger', async t => {
  const path = ledgerWithRows(tempDir(t))
  const ledger = new JobLedger(path)
  const sum = await ledger.sha256(signal)
  ledger.close()
  await checkLedger(path, sum, signal)
  const changes = {
    "UPDATE generated SET event = replace(event, 'u-1', 'u-3')":
      "UPDATE generated SET event = replace(event, 'u-3', 'u-1')",
    "UPDATE link SET user = 'u-3'": "UPDATE link SET user = 'u-1'",
    "UPDATE fact SET value = 'b'": "UPDATE fact SET value = 'a'",
  }
  for (const [change, back] of Object.entries(changes)) {
    execute(path, change)
    await assert.rejects(checkLedger(path, sum, signal), LedgerDamage)
    execute(path, back)
    await checkLedger(path, sum, signal)
  }
})

it('computing the checksum of a ledger can be paused', async t => {
  const path = ledgerWithRows(tempDir(t))
  await assert.rejects(checkLedger(path, '', AbortSignal.abort()), JobPaused)
})

it('a row of the ledger that is not JSON counts as damage', t => {
  const path = ledgerWithRows(tempDir(t))
  execute(path, "UPDATE generated SET event = '{'")
  const ledger = new JobLedger(path)
  t.after(() => ledger.close())
  assert.throws(() => [...ledger.generatedEvents()], LedgerDamage)
  execute(path, "UPDATE snapshot SET properties = '7'")
  assert.throws(() => ledger.person('u-1', { a: 2 }), LedgerDamage)
})

/** @returns its path. */
function ledgerWithRows(folder: string): string {
  const path = join(folder, 'ledger.db')
  const ledger = new JobLedger(path)
  ledger.begin()
  ledger.link('d-1', 'u-1')
  ledger.putFact({ kind: 'alias', key: 'k', value: 'a' })
  ledger.person('u-1', { a: 1 })
  ledger.addGenerated('link', { uuid: 'x', timeUs: 1, distinctId: 'u-1' } as unknown as ImportedEvent)
  ledger.commit()
  ledger.close()
  return path
}

function execute(path: string, sql: string): void {
  const database = new Database(path)
  database.exec(sql)
  database.close()
}
