import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { type AddressParts, putAddress } from './page-address.ts'

const all = { host: true, path: true }

describe('the address of a page', () => {
  it('is split into its host with the port, and its path without query and fragment', () => {
    assert.deepEqual(of('https://shop.example.test:8443/a/b?x=1#top', all), {
      $current_url: 'https://shop.example.test:8443/a/b?x=1#top',
      $host: 'shop.example.test:8443',
      $pathname: '/a/b',
    })
  })

  it('does not set parts that the source has in separate fields', () => {
    const url = 'https://shop.example.test/a'
    assert.deepEqual(of(url, { host: false, path: true }), { $current_url: url, $pathname: '/a' })
  })

  it('is kept without parts when it is no absolute URL', () => {
    assert.deepEqual(of('/a?x=1', all), { $current_url: '/a?x=1' })
    assert.deepEqual(of(null, all), {})
  })
})

function of(url: string | null, parts: AddressParts): JsonObject {
  const properties: JsonObject = {}
  putAddress(properties, url, parts)
  return properties
}
