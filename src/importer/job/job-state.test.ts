import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobFolder } from './job-folder.ts'
import { JobStopped } from './job-paused.ts'
import { JobState, readJobState, stateFile, writeJobState } from './job-state.ts'

describe('the state of a job', () => {
  it('returns every stored value, lists the values under a prefix by name, and is not created by reading', t => {
    const folder = new JobFolder(tempDir(t))
    assert.equal(readJobState(folder, 'one'), null)
    assert.ok(!existsSync(folder.file(stateFile)))
    const numbers = Array.from({ length: 250 }, (_, at) => at)
    {
      using state = new JobState(folder)
      for (const at of numbers.toReversed()) state.put(`a/${String(at).padStart(3, '0')}`, at)
      for (const name of ['a', 'a.', 'a0', 'b/1']) state.put(name, name)
      assert.deepEqual([...state.list('a/')], numbers)
    }
    writeJobState(folder, 'one', { 'ünïcode ☂': [1, null] })
    assert.deepEqual(readJobState(folder, 'one'), { 'ünïcode ☂': [1, null] })
    writeJobState(folder, 'one', null)
    assert.equal(readJobState(folder, 'one'), null)
  })

  it('keeps either all changes of a transaction or none', t => {
    const folder = new JobFolder(tempDir(t))
    using state = new JobState(folder)
    state.put('a', 1)
    const change = () => {
      state.put('a', 2)
      throw new Error('killed')
    }
    assert.throws(() => state.transact(change), /killed/)
    assert.equal(state.get('a'), 1)
    state.transact(() => state.put('a', 3))
    assert.equal(readJobState(folder, 'a'), 3, 'another process sees it')
  })

  it('is reported as damaged, with a remedy, if any byte of a value changed or the file is something else', t => {
    const folder = new JobFolder(tempDir(t))
    const path = folder.file(stateFile)
    const isReported = (error: unknown) =>
      error instanceof JobStopped &&
      error.message.startsWith(`${path} is damaged. Delete state.db-wal if it exists, and restore state.db from`)
    writeJobState(folder, 'a', { approved: 'yes' })
    const whole = readFileSync(path, 'latin1')
    writeFileSync(path, whole.replace('yes', 'yet'), 'latin1')
    assert.throws(() => readJobState(folder, 'a'), isReported)
    for (const other of [whole.slice(0, 5_000), `${'x'.repeat(5_000)}`, '{"v": 1, "par']) {
      writeFileSync(path, other, 'latin1')
      assert.throws(() => readJobState(folder, 'a'), isReported, other.slice(0, 20))
      assert.throws(() => writeJobState(folder, 'b', 1), isReported)
    }
  })
})
