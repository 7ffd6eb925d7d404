// A person with almost the maximum size of properties, so that each of its events costs the worker some 15 ms.

import assert from 'node:assert/strict'
import type { Pennon } from './pennon.ts'

/** The number of events that make the person, since a single one would be too large. */
export const largePersonEvents = 4

/** Makes the person, with the distinct id `large`. @returns the bytes of its properties. */
export async function makeLargePerson(pennon: Pennon, token: string): Promise<number> {
  let bytes = 0
  for (let part = 0; part < largePersonEvents; part++) {
    const $set = Object.fromEntries(
      Array.from({ length: 15 }, (_, n) => [`k${part}-${n}`, `${part}-${n}`.padEnd(10_000, 'x')]),
    )
    bytes += JSON.stringify($set).length
    const sent = await pennon.post('/capture/', {
      api_key: token,
      event: '$set',
      distinct_id: 'large',
      properties: { $set },
    })
    assert.equal(sent.status, 200)
  }
  await pennon.caughtUp()
  return bytes
}
