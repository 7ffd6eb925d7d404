import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { err, ok } from '#core/result.ts'
import type { EncryptionKey, EncryptionKeys } from '#ports/encryption-keys.ts'
import { createPayloadCipher } from './payload-cipher.ts'

function keysOf(...keys: EncryptionKey[]): EncryptionKeys {
  return {
    getCurrentKey: async () => (keys[0] === undefined ? err('there is no key') : ok(keys[0])),
    findKey: async id => keys.find(key => key.id === id) ?? null,
  }
}

const a: EncryptionKey = { id: 'a'.repeat(16), bytes: Buffer.alloc(32, 1) }
const b: EncryptionKey = { id: 'b'.repeat(16), bytes: Buffer.alloc(32, 2) }
const here = { projectId: 1, valueKey: 'true' }

async function sealed(text: string): Promise<string> {
  const outcome = await createPayloadCipher(keysOf(a), randomBytes).seal(text, here)
  assert.ok(outcome.ok)
  return outcome.value
}

describe('the encryption of payloads', () => {
  it('decrypts what it encrypted, and never produces the same text twice', async () => {
    const cipher = createPayloadCipher(keysOf(a), randomBytes)
    for (const text of ['', '{"a": 1}', 'ünï\u0000cødé 🚩', 'x'.repeat(100_000)]) {
      const [first, second] = [await sealed(text), await sealed(text)]
      assert.notEqual(first, second)
      assert.match(first, /^enc:v1:a{16}:[\w-]+$/)
      assert.equal(await cipher.open(first, here), text)
    }
  })

  it('does not decrypt a payload in another project, for another value, or with another key of the same name', async () => {
    const text = await sealed('secret')
    const cipher = createPayloadCipher(keysOf(a), randomBytes)
    assert.equal(await cipher.open(text, { ...here, projectId: 2 }), null)
    assert.equal(await cipher.open(text, { ...here, valueKey: 'control' }), null)
    assert.equal(await createPayloadCipher(keysOf({ ...b, id: a.id }), randomBytes).open(text, here), null)
  })

  it('decrypts with any of its keys, and encrypts with the first', async () => {
    const text = await sealed('old')
    const both = createPayloadCipher(keysOf(b, a), randomBytes)
    assert.equal(await both.open(text, here), 'old')
    const newer = await both.seal('new', here)
    assert.ok(newer.ok && newer.value.startsWith(`enc:v1:${b.id}:`))
    assert.equal(await createPayloadCipher(keysOf(b), randomBytes).open(text, here), null)
  })

  it('does not decrypt a text that was changed, truncated or never encrypted', async () => {
    const cipher = createPayloadCipher(keysOf(a), randomBytes)
    const text = await sealed('secret')
    const bytes = Buffer.from(text.split(':').at(-1)!, 'base64url')
    for (const position of bytes.keys()) {
      const changed = Buffer.from(bytes)
      changed[position]! ^= 1
      assert.equal(await cipher.open(`enc:v1:${a.id}:${changed.toString('base64url')}`, here), null, String(position))
    }
    for (const other of [
      '',
      'secret',
      '"secret"',
      `enc:v1:${a.id}:`,
      `enc:v1:${a.id}:AAAA`,
      text.slice(0, -4),
      `${text}!`,
    ])
      assert.equal(await cipher.open(other, here), null, other)
  })

  it('reports why nothing can be encrypted', async () => {
    assert.deepEqual(await createPayloadCipher(keysOf(), randomBytes).seal('x', here), err('there is no key'))
  })
})
