import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { openEncryptionKeys } from './encryption-keys.ts'

const hex = (digit: string) => digit.repeat(64)

function keysIn(folder: string, over: Partial<Parameters<typeof openEncryptionKeys>[0]> = {}) {
  const keyFile = join(folder, 'encryption.key')
  return openEncryptionKeys({ given: [], keyFile, missingKeyReason: null, randomBytes, ...over })
}

describe('encryption keys', () => {
  it('are generated only once, however many processes need one at the same time', async t => {
    const folder = tempDir(t)
    const made = await Promise.all(Array.from({ length: 20 }, () => keysIn(folder).getCurrentKey()))
    const ids = new Set(made.map(key => (key.ok ? key.value.id : key.error)))
    assert.equal(ids.size, 1)
    assert.match([...ids][0]!, /^[0-9a-f]{16}$/)
    assert.deepEqual(readdirSync(folder), ['encryption.key'])
    assert.deepEqual((await keysIn(folder).findKey([...ids][0]!))?.bytes.length, 32)
  })

  it('from the settings take precedence over those in the file, which can still decrypt older data', async t => {
    const folder = tempDir(t)
    const fromFile = await keysIn(folder).getCurrentKey()
    const keys = keysIn(folder, { given: [hex('1'), hex('2')] })
    const [current, second] = [await keys.getCurrentKey(), await keysIn(folder, { given: [hex('2')] }).getCurrentKey()]
    assert.ok(fromFile.ok && current.ok && second.ok)
    assert.deepEqual(Buffer.from(current.value.bytes).toString('hex'), hex('1'))
    for (const { value } of [fromFile, current, second]) assert.deepEqual(await keys.findKey(value.id), value)
    assert.equal(await keys.findKey('0'.repeat(16)), null)
  })

  it('are found in a file that another process has created in the meantime', async t => {
    const folder = tempDir(t)
    const early = keysIn(folder)
    assert.equal(await early.findKey('0'.repeat(16)), null)
    const made = await keysIn(folder).getCurrentKey()
    assert.ok(made.ok)
    assert.deepEqual(await early.findKey(made.value.id), made.value)
  })

  it('are not generated where that is not allowed, and a file that contains no key is refused', async t => {
    const folder = tempDir(t)
    assert.deepEqual(await keysIn(folder, { missingKeyReason: 'not here' }).getCurrentKey(), {
      ok: false,
      error: 'not here',
    })
    assert.deepEqual(readdirSync(folder), [])
    writeFileSync(join(folder, 'encryption.key'), 'half a k')
    await assert.rejects(keysIn(folder).getCurrentKey(), /encryption\.key does not contain an encryption key/)
  })
})
