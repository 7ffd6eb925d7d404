import assert from 'node:assert/strict'
import { closeSync, existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, it } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { appendToFile, createNewFile } from '../read/link-safe-files.ts'
import { Type } from '../records/file-schema.ts'
import { JobFolder } from './job-folder.ts'

describe('a file of a job', () => {
  it('is read as it was written, and as null when missing', t => {
    const folder = new JobFolder(tempDir(t))
    const schema = Type.Object({ a: Type.Number() })
    assert.equal(folder.readJson('plan.json', schema), null)
    folder.writeJson('deep/er/plan.json', { a: 1 })
    assert.deepEqual(folder.readJson('deep/er/plan.json', schema), { a: 1 })
    assert.equal(readFileSync(folder.file('deep/er/plan.json'), 'utf8'), '{\n  "a": 1\n}\n')
  })

  it('is damaged if a folder has its name', t => {
    const folder = new JobFolder(tempDir(t))
    mkdirSync(folder.file('manifest.json'))
    assert.throws(
      () => folder.readJson('manifest.json', Type.Object({})),
      /manifest\.json is damaged\. Delete it and run/,
    )
  })

  it('is never written through a symbolic link', t => {
    const folder = new JobFolder(tempDir(t))
    const foreign = folder.file('foreign')
    for (const name of ['plan.json', 'plan.json.next', 'rejects/0.jsonl.next', 'spill/2024-05-01.lines']) {
      mkdirSync(dirname(folder.file(name)), { recursive: true })
      symlinkSync(foreign, folder.file(name))
    }
    for (const content of ['', 'foreign']) {
      if (content !== '') writeFileSync(foreign, content)
      folder.write('plan.json', 'own')
      assert.equal(readFileSync(folder.file('plan.json'), 'utf8'), 'own')
      assert.ok(lstatSync(folder.file('plan.json')).isFile())
      closeSync(createNewFile(folder.file('rejects/0.jsonl.next')))
      assert.throws(() => appendToFile(folder.file('spill/2024-05-01.lines'), 'own'), { code: 'ELOOP' })
      if (content === '') assert.ok(!existsSync(foreign))
      else assert.equal(readFileSync(foreign, 'utf8'), content)
      symlinkSync(foreign, folder.file('plan.json.next'))
    }
  })
})
