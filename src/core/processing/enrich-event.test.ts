import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aCapturedEvent, anImportedEvent, aProject } from '../../../tests/support/values.ts'
import { PropertiesDraft } from '../events/properties-draft.ts'
import { toGeoipProperties } from '../geoip.ts'
import { type JsonObject, parseJson } from '../json.ts'
import { addAddressAndLocation } from './enrich-event.ts'

/** The event's country, and the address that was looked up. */
function locate(properties: JsonObject, looksUpImport: boolean, over: Parameters<typeof aProject>[0] = {}) {
  const event = anImportedEvent('e', 'a', 0, properties, { ip: '203.0.113.9' })
  const asked: string[] = []
  const geoipOf = (address: string) => {
    asked.push(address)
    return toGeoipProperties({ country_code: 'NO' })
  }
  const draft = new PropertiesDraft(event.propertiesJson, properties)
  const item = { kind: 'event', offset: 0, event, properties, set: null, setOnce: null } as const
  addAddressAndLocation(aProject(over), { geoipOf, looksUpImport }, item, draft)
  return [(parseJson(draft.json()) as JsonObject).$geoip_country_code, asked]
}

describe('the location of a cookieless event', () => {
  function locateVisitor(properties: JsonObject, over: Parameters<typeof aProject>[0] = {}) {
    const visitor = { stateful: null, location: { country_code: 'NO' } }
    const event = aCapturedEvent(1, { propertiesJson: JSON.stringify(properties), ip: '', visitor })
    const draft = new PropertiesDraft(event.propertiesJson, properties)
    const item = { kind: 'event', offset: 0, event, properties, set: null, setOnce: null } as const
    const geoipOf = () => assert.fail('looked up')
    const geoip = addAddressAndLocation(aProject(over), { geoipOf, looksUpImport: false }, item, draft)
    return { country: (parseJson(draft.json()) as JsonObject).$geoip_country_code, set: geoip?.set, text: draft.json() }
  }

  it('is the one that the edge looked up, also for its person, and the address is not stored', () => {
    const { country, set, text } = locateVisitor({ n: 1 })
    assert.deepEqual([country, set?.$geoip_country_code, text.includes('$ip')], ['NO', 'NO', false])
  })

  it('is left out if the event or the project disables look-ups', () => {
    assert.equal(locateVisitor({ $geoip_disable: true }).country, undefined)
    assert.equal(locateVisitor({}, { geoipEnabled: false }).country, undefined)
  })
})

describe('the location of an imported event', () => {
  it('is not looked up unless its job asks for it', () => {
    assert.deepEqual(locate({ $ip: '198.51.100.1' }, false), [undefined, []])
  })

  it('comes from the recorded address, even if the importer switched look-ups off', () => {
    assert.deepEqual(locate({ $ip: '198.51.100.1', $geoip_disable: true }, true), ['NO', ['198.51.100.1']])
  })

  it('never comes from the address of the sender', () => {
    for (const properties of [{}, { $ip: '' }, { $ip: 7 }]) assert.deepEqual(locate(properties, true), [undefined, []])
  })

  it('is kept if the event already has one', () => {
    assert.deepEqual(locate({ $ip: '198.51.100.1', $geoip_country_code: 'FR' }, true), ['FR', []])
  })

  it('is not looked up if the project disables look-ups', () => {
    assert.deepEqual(locate({ $ip: '198.51.100.1' }, true, { geoipEnabled: false }), [undefined, []])
  })
})
