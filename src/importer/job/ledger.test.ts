import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobLedger } from './ledger.ts'

it('a fact is the same text before and after the ledger was opened again', t => {
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
