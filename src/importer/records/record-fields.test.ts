import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { RecordReject } from './imported-event.ts'
import { putUrlProperties, readEventName } from './record-fields.ts'

describe('the name of an event', () => {
  it('is refused as missing when it is absent or blank', () => {
    for (const value of [undefined, null, '', '  ', '\t'])
      assert.throws(() => readEventName(value, 'event'), new RecordReject('event_missing', 'event'))
    assert.equal(readEventName(' Paid ', 'event'), ' Paid ')
  })

  it('has at most 200 characters, counted as code points', () => {
    for (const character of ['x', '😀']) {
      const longest = character.repeat(200)
      assert.equal(readEventName(longest, 'event'), longest)
      const tooLong = new RecordReject('event_name_too_long', 'event')
      assert.throws(() => readEventName(`${longest}x`, 'event'), tooLong)
      assert.throws(() => readEventName(character.repeat(500), 'event'), tooLong)
    }
  })
})

describe('the URL of a page', () => {
  const url = 'https://shop.example.test:8443/a/b?x=1#top'
  const propertiesOf = (...args: [url: string | null, options?: { hasHost: boolean }]) => {
    const properties: JsonObject = {}
    putUrlProperties(properties, ...args)
    return properties
  }

  it('is split into host and port, and path without query and fragment; a host that the source gives takes precedence', () => {
    const path = { $current_url: url, $pathname: '/a/b' }
    assert.deepEqual(propertiesOf(url), { ...path, $host: 'shop.example.test:8443' })
    assert.deepEqual(propertiesOf(url, { hasHost: true }), path)
  })

  it('is kept whole when it is not an absolute URL', () => {
    assert.deepEqual(propertiesOf('/a?x=1'), { $current_url: '/a?x=1' })
    assert.deepEqual(propertiesOf(null), {})
  })
})
