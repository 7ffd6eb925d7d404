import assert from 'node:assert/strict'
import { it } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { JobDatabase } from './job-database.ts'
import { JobFolder } from './job-folder.ts'
import { JobLedger } from './ledger.ts'
import { ContentDamage } from './sqlite-file.ts'

it('a fact in the ledger is the same before and after the ledger is reopened', t => {
  const folder = new JobFolder(tempDir(t))
  const found = (ledger: JobLedger) => ['cut \ud83c', 'whole 🎈'].map(key => ledger.findFact('alias', key))
  const database = new JobDatabase(folder)
  const ledger = new JobLedger(database)
  assert.deepEqual(found(ledger), [null, null])
  ledger.putFact({ kind: 'alias', key: 'cut \ud83c', value: 'user \udf88' })
  ledger.putFact({ kind: 'alias', key: 'whole 🎈', value: 'user 🎈' })
  const before = found(ledger)
  database.close()
  const again = new JobDatabase(folder)
  assert.deepEqual(found(new JobLedger(again)), before)
  assert.deepEqual(before, ['user \ufffd', 'user 🎈'])
  again.close()
})

it('generated events are read in the order of time and uuid, however many there are', t => {
  const database = new JobDatabase(new JobFolder(tempDir(t)))
  t.after(() => database.close())
  const ledger = new JobLedger(database)
  const event = (number: number) => ({ uuid: `u-${number}`, timeUs: (number * 7) % 5 }) as ImportedEvent
  const events = Array.from({ length: 2_500 }, (_, number) => event(number))
  for (const each of events) ledger.addGenerated('link', each)
  ledger.addGenerated('group', event(0))
  const inOrder = events.toSorted((a, b) => a.timeUs - b.timeUs || (a.uuid < b.uuid ? -1 : 1))
  assert.deepEqual([...ledger.generatedEvents('link')], inOrder)
  assert.deepEqual([...ledger.generatedEvents('group')], [event(0)])
})

it('a row of the ledger that is not JSON counts as damage', t => {
  const database = new JobDatabase(new JobFolder(tempDir(t)))
  t.after(() => database.close())
  const ledger = new JobLedger(database)
  ledger.person('u-1', { a: 1 })
  ledger.addGenerated('link', { uuid: 'x', timeUs: 1, distinctId: 'u-1' } as unknown as ImportedEvent)
  ledger.flush()
  database.sql.exec("UPDATE generated SET event = '{'; UPDATE snapshot SET properties = '7'")
  assert.throws(() => [...ledger.generatedEvents('link')], ContentDamage)
  assert.throws(() => new JobLedger(database).person('u-1', { a: 2 }), ContentDamage)
})
