import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sipHash128 } from './siphash.ts'
import {
  buildHashedDeviceId,
  buildHashedDistinctId,
  computeVisitorHash,
  encodeVisitorHash,
  hashIdentifiedVisitor,
  truncateUserAgent,
  type VisitorParts,
} from './visitor-hash.ts'

const salt = Buffer.from('AQIDBAUGBwgJCgsMDQ4PEA==', 'base64')
const fridge: VisitorParts = { projectId: 1, address: '1.2.3.4', userAgent: 'Smart Fridge', extra: '' }
const hashOf = (parts: Partial<VisitorParts>) => computeVisitorHash(salt, { ...fridge, ...parts }, 'example.com')

describe('the hash of a cookieless visitor', () => {
  it('is SipHash-2-4 with 128 bits', () => {
    // The reference's vectors: key 00 … 0f, message 00 … n-1.
    const key = Uint8Array.from({ length: 16 }, (_, at) => at)
    const hexOf = (length: number) =>
      Buffer.from(
        sipHash128(
          key,
          Uint8Array.from({ length }, (_, at) => at),
        ),
      ).toString('hex')
    assert.equal(hexOf(0), 'a3817f04ba25a8e66df67214c7550293')
    assert.equal(hexOf(1), 'da87c1d86b99af44347659119b22fc45')
    assert.equal(hexOf(8), '3b62a9ba6258f5610f83e264f31497b4')
    assert.equal(hexOf(15), '5493e99933b0a8117e08ec0f97cfc3d9')
  })

  it('equals the hash that PostHog computes', () => {
    const hash = computeVisitorHash(salt, fridge, 'example.com')
    assert.equal(Buffer.from(hash).toString('base64'), 'sjSJh5qV4gsbEAc2DG6w7g==')
    assert.equal(encodeVisitorHash(hash), 'sjSJh5qV4gsbEAc2DG6w7g')
    assert.equal(buildHashedDistinctId(encodeVisitorHash(hash)), 'cookieless_sjSJh5qV4gsbEAc2DG6w7g')
    assert.equal(buildHashedDeviceId(encodeVisitorHash(hash)), 'cookielessd_sjSJh5qV4gsbEAc2DG6w7g')
  })

  it('uses only the first 100 code points of the page’s additional text', () => {
    const emoji = '\u{1f600}'
    assert.deepEqual(hashOf({ extra: emoji.repeat(100) }), hashOf({ extra: `${emoji.repeat(100)}more` }))
    assert.notDeepEqual(hashOf({ extra: emoji.repeat(99) }), hashOf({ extra: emoji.repeat(100) }))
  })

  it('differs if any input differs, and for each further $identify of the visitor', () => {
    const base = hashOf({})
    const all = [
      ...[base, hashOf({ projectId: 2 }), hashOf({ address: '1.2.3.5' }), hashOf({ userAgent: 'Kettle' })],
      ...[
        hashOf({ extra: 'x' }),
        computeVisitorHash(salt, fridge, 'example.org'),
        hashIdentifiedVisitor(salt, base, 1),
      ],
      ...[
        hashIdentifiedVisitor(salt, base, 2),
        hashIdentifiedVisitor(salt, base, -1),
        computeVisitorHash(Buffer.alloc(16), fridge, 'example.com'),
      ],
    ]
    assert.equal(new Set(all.map(encodeVisitorHash)).size, all.length)
    assert.equal(hashIdentifiedVisitor(salt, base, 0), base)
  })

  it('uses a user agent that is truncated in the same way as by posthog-js', () => {
    assert.equal(truncateUserAgent('x'.repeat(1_000)), 'x'.repeat(1_000))
    assert.equal(truncateUserAgent('x'.repeat(1_001)), `${'x'.repeat(997)}...`)
  })
})
