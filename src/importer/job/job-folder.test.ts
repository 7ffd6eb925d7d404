import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import Type from 'typebox'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobFolder } from './job-folder.ts'
import { JobStopped } from './job-paused.ts'

describe('a file of a job', () => {
  it('is read as it was written, and null without one', t => {
    const folder = new JobFolder(tempDir(t))
    const schema = Type.Object({ a: Type.Number() })
    assert.equal(folder.readJson('plan.json', schema), null)
    folder.writeJson('deep/er/plan.json', { a: 1 })
    assert.deepEqual(folder.readJson('deep/er/plan.json', schema), { a: 1 })
    assert.equal(readFileSync(folder.file('deep/er/plan.json'), 'utf8'), '{\n  "a": 1\n}\n')
  })

  it('is named with the way out when it is damaged', t => {
    const folder = new JobFolder(tempDir(t))
    folder.writeJson('whole.json', { v: 1, parts: [{ n: 1 }] })
    const whole = readFileSync(folder.file('whole.json'), 'utf8')
    const names = ['checkpoint.json', 'plan.json', 'manifest.json', 'approval.json', 'service-job.json', 'stats.json']
    for (const text of [
      '',
      '\0\0\0',
      'null',
      '[]',
      '7',
      '{"v": 1}',
      '{"v": 1, "parts": [{"n": []}]}',
      whole.slice(0, -4),
    ])
      for (const name of names) {
        writeFileSync(folder.file(name), text)
        assert.throws(
          () =>
            folder.readJson(
              name,
              Type.Object({ v: Type.Number(), parts: Type.Array(Type.Object({ n: Type.Number() })) }),
            ),
          (error: Error) =>
            error instanceof JobStopped &&
            error.message.startsWith(`${folder.file(name)} is damaged. `) &&
            /run again|approve again|Put back a copy/.test(error.message),
          `${name}: ${text}`,
        )
      }
  })
})
