import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import lzString from 'lz-string'
import { decideErrors } from './decide-errors.ts'
import { parseDecideQuery } from './decide-query.ts'
import type { DecideContext } from './decide-request.ts'
import {
  decodeFlagsOnEventLoop,
  decodeFlagsRequest,
  extractRequestLiterals,
  inlineFlagsBytesMax,
  inlineFlagsValuesMax,
  restoreRequestLiterals,
} from './decode-flags.ts'
import type { FlagsBody } from './flags-body.ts'

const query = parseDecideQuery({}, 'flags')
assert.ok(query.ok)
const context: DecideContext = {
  endpoint: 'flags',
  query: query.value,
  userAgent: '',
  hasBrowserHeader: false,
  address: '',
}

function bodyOf(bytes: Buffer | string, over: Partial<FlagsBody> = {}): FlagsBody {
  const headers = { contentType: 'application/json', contentEncoding: undefined, compression: '' }
  return { ...headers, bytes: Buffer.from(bytes), ...over }
}

function requestText(personProperties: string): string {
  return `{"token":"phc_test","distinct_id":"u","person_properties":${personProperties}}`
}

const tooMuchWork = { ok: false, error: 'too_much_work' }

describe('decoding /flags on the event loop', () => {
  it('leaves a body to a thread if it is large, either as sent or decompressed', () => {
    const text = requestText(`{"a":"${'x'.repeat(inlineFlagsBytesMax)}"}`)
    const lz64 = bodyOf(lzString.compressToBase64(text), { compression: 'lz64' })
    assert.deepEqual(decodeFlagsOnEventLoop(bodyOf(text), context), tooMuchWork)
    assert.deepEqual(decodeFlagsOnEventLoop(bodyOf(gzipSync(text)), context), tooMuchWork)
    assert.deepEqual(decodeFlagsOnEventLoop(lz64, context), tooMuchWork)
    assert.ok(decodeFlagsRequest(lz64, context).ok)
    assert.ok(decodeFlagsRequest(bodyOf(text), context).ok)
    assert.ok(decodeFlagsRequest(bodyOf(gzipSync(text)), context).ok)
    // Its decoder takes time for what the sender announces, not for what comes out.
    const brotli = bodyOf(brotliCompressSync(requestText('{}')), { contentEncoding: 'br' })
    assert.deepEqual(decodeFlagsOnEventLoop(brotli, context), tooMuchWork)
    assert.ok(decodeFlagsRequest(brotli, context).ok)
    const bomb = gzipSync(Buffer.alloc(5_000_000, ' '))
    assert.deepEqual(decodeFlagsRequest(bodyOf(bomb), context), {
      ok: false,
      error: decideErrors.decompressedTooLarge,
    })
  })
})

describe('many values in a /flags request', () => {
  const many = `[${'0,'.repeat(inlineFlagsValuesMax)}1.0]`
  const form = { contentType: 'application/x-www-form-urlencoded' }

  it('are left to a thread in any encoding, and are not parsed first', t => {
    const parses = t.mock.method(JSON, 'parse').mock
    const text = requestText(`{"a":${many}}`)
    const encoded = `data=${encodeURIComponent(Buffer.from(text).toString('base64'))}`
    const lz64 = bodyOf(lzString.compressToBase64(text), { compression: 'lz64' })
    const tolerant = bodyOf(`{token:'phc_test',distinct_id:'u',person_properties:{a:${many}}}`)
    for (const body of [bodyOf(text), bodyOf(gzipSync(text)), lz64, bodyOf(encoded, form), tolerant]) {
      parses.resetCalls()
      assert.deepEqual(decodeFlagsOnEventLoop(body, context), tooMuchWork)
      const ofText = parses.calls.filter(call => String(call.arguments[0]).length >= many.length)
      assert.equal(ofText.length, 0)
      assert.ok(decodeFlagsRequest(body, context).ok)
    }
  })

  it('are not counted inside strings; few values are decoded at once, even if number literals must be preserved', () => {
    const few = requestText(`{"a":[${'1.0,'.repeat(inlineFlagsValuesMax - 100)}1e5]}`)
    assert.ok(decodeFlagsOnEventLoop(bodyOf(few), context).ok)
    assert.ok(decodeFlagsOnEventLoop(bodyOf(requestText(`{"a":${JSON.stringify(many)}}`)), context).ok)
  })
})

describe('a request that is passed between threads', () => {
  it('keeps number literals, keys of every name, and lone surrogates', () => {
    const properties =
      '{"a":1.0,"__proto__":{"constructor":[1e3,{"x":-0}],"y":12345678901234567890},"l":[[],[1.50]],"s":"\\ud800","t":2}'
    const decode = () => decodeFlagsRequest(bodyOf(requestText(properties)), context)
    const direct = decode()
    assert.ok(direct.ok)
    const posted = restoreRequestLiterals(structuredClone(extractRequestLiterals(decode())))
    assert.ok(posted.ok)
    assert.equal(JSON.stringify(posted.value), JSON.stringify(direct.value))
    assert.match(JSON.stringify(posted.value.personProperties), /^\{"a":1\.0,"__proto__":\{"constructor":\[1e3/)
    assert.deepEqual(posted, direct)
  })

  it('keeps number literals in groups, and in group properties', () => {
    const text =
      '{"token":"phc_test","distinct_id":"u","groups":{"company":1.0,"x":[1e3]},"group_properties":{"company":{"a":2.50}}}'
    const posted = restoreRequestLiterals(
      structuredClone(extractRequestLiterals(decodeFlagsRequest(bodyOf(text), context))),
    )
    assert.ok(posted.ok)
    assert.equal(JSON.stringify(posted.value.groups), '{"company":1.0,"x":[1e3]}')
    assert.equal(JSON.stringify(posted.value.groupProperties), '{"company":{"a":2.50}}')
  })

  it('keeps the reason of a refusal', () => {
    const refused = decodeFlagsRequest(bodyOf('{"token":1}'), context)
    assert.deepEqual(restoreRequestLiterals(structuredClone(extractRequestLiterals(refused))), {
      ok: false,
      error: decideErrors.invalidJson,
    })
  })
})
