// The location of requests and events, tested on a started instance: which address counts, which source wins, and what
// events and persons get.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { createSilentLogger } from '#telemetry/log.ts'
import { openGeoipPackage } from '../../src/adapters/geoip/open-geoip.ts'
import { openGeoip } from '../../src/compose/stores/geoip.ts'
import { readConfig } from '../../src/config.ts'
import { geoipKeys } from '../../src/core/geoip.ts'
import { writeMmdb } from '../support/mmdb-writer.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const [american, dutch, german] = ['12.87.118.0', '193.0.6.139', '2a00:1450:4001:81b::200e']

type Properties = Record<string, unknown>

async function createCountryFlag(pennon: Pennon, country: string): Promise<void> {
  const filter = { key: '$geoip_country_code', type: 'person', operator: 'exact', value: [country] }
  await pennon.api('POST', '/api/projects/@current/feature_flags/', {
    key: country,
    filters: { groups: [{ properties: [filter], rollout_percentage: 100 }] },
  })
}

/** The countries for which a flag is on. */
async function countriesOf(pennon: Pennon, headers: Record<string, string>, body: Properties = {}): Promise<string[]> {
  const request = { api_key: testProjectKey, distinct_id: 'ada', ...body }
  const response = await pennon.post('/decide?v=3', request, headers)
  assert.equal(response.status, 200)
  const { featureFlags } = (await response.json()) as { featureFlags: Record<string, boolean> }
  return Object.keys(featureFlags).filter(key => featureFlags[key])
}

const isInstalled = () => {
  const opened = openGeoipPackage(createSilentLogger())
  if (opened.ok) opened.value?.close()
  return opened.ok && opened.value !== null
}

describe('the GeoIP location in a started instance', {
  skip: !process.env.CI && !isInstalled() && 'no GeoIP data installed',
}, () => {
  let pennon: Pennon
  const capture = async (body: Properties, headers: Record<string, string>) => {
    const response = await pennon.post('/capture/', { api_key: testProjectKey, ...body }, headers)
    assert.equal(response.status, 200)
  }
  const propertiesOf = async (distinctId: string) => {
    const { results } = await pennon.api<{ results: { properties: Properties }[] }>(
      'GET',
      `/api/projects/@current/events/?distinct_id=${distinctId}`,
    )
    assert.equal(results.length, 1)
    return results[0]!.properties
  }
  const geoipNames = (properties: Properties) => Object.keys(properties).filter(name => name.startsWith('$geoip_'))

  before(async () => {
    pennon = await startPennon()
    for (const country of ['US', 'NL', 'DE']) await createCountryFlag(pennon, country)
    await capture({ event: 'seen', distinct_id: 'ada' }, { 'x-forwarded-for': american })
    await capture({ event: 'seen', distinct_id: 'private' }, { 'x-forwarded-for': '10.0.0.5' })
    await capture({ event: 'seen', distinct_id: 'here' }, {})
    await capture(
      { event: 'seen', distinct_id: 'off', properties: { $geoip_disable: true } },
      { 'x-forwarded-for': dutch },
    )
    await capture({ event: 'seen', distinct_id: 'said', properties: { $ip: german } }, { 'x-forwarded-for': dutch })
    const imported = { event: 'seen', properties: { distinct_id: 'past' }, timestamp: '2020-01-01T00:00:00Z' }
    const batch = { api_key: testProjectKey, historical_migration: true, batch: [imported] }
    assert.equal((await pennon.post('/batch/', batch, { 'x-forwarded-for': dutch })).status, 200)
    await pennon.caughtUp()
  })
  after(() => pennon?.stop())

  it('is added to the event, to its person and to the person’s initial properties', async () => {
    const event = await propertiesOf('ada')
    assert.equal(event.$geoip_country_code, 'US')
    assert.equal(event.$geoip_city_name, 'Cleveland')
    assert.equal(event.$geoip_time_zone, 'America/New_York')
    assert.ok(!Object.values(event).includes(null))
    const { results } = await pennon.api<{ results: { properties: Properties }[] }>(
      'GET',
      '/api/projects/@current/persons/?distinct_id=ada',
    )
    const person = results[0]!.properties
    for (const key of geoipKeys) {
      assert.equal(person[`$geoip_${key}`], event[`$geoip_${key}`] ?? null, key)
      assert.equal(person[`$initial_geoip_${key}`], event[`$geoip_${key}`] ?? null, key)
    }
    assert.equal(person.$geoip_country_name, 'United States')
    assert.equal(person.$geoip_city_confidence, null)
  })

  it('is not added to events from private addresses, to events that disable it, or to imports', async () => {
    for (const distinctId of ['private', 'here', 'off', 'past'])
      assert.deepEqual(geoipNames(await propertiesOf(distinctId)), distinctId === 'off' ? ['$geoip_disable'] : [])
  })

  it('is looked up for the address that the client sends rather than for the address of the connection', async () => {
    assert.equal((await propertiesOf('said')).$geoip_country_name, 'Germany')
  })

  it('comes from the override header, in either spelling, rather than from the stored person, when flags are evaluated', async () => {
    assert.deepEqual(await countriesOf(pennon, {}), ['US'], 'stored')
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: dutch }), ['NL'])
    assert.deepEqual(await countriesOf(pennon, { 'X-Forwarded-For': dutch }), ['NL'])
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: dutch, 'X-Forwarded-For': german }), ['NL'])
    assert.deepEqual(await countriesOf(pennon, { 'X-Forwarded-For': `unknown, [${german}]:443, ${dutch}` }), ['DE'])
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: dutch }, { distinct_id: 'nobody' }), ['NL'])
  })

  it('is the stored one if the header has no public address or the caller disables the look-up', async () => {
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: '192.168.1.1' }), ['US'])
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: '::1' }), ['US'])
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: dutch }, { geoip_disable: true }), ['US'])
    assert.deepEqual(await countriesOf(pennon, { 'X-Forwarded-For': dutch }, { disable_geoip: true }), ['US'])
  })

  it('yields to properties sent by the caller, unless they are null', async () => {
    const said = (country: string | null) => ({ person_properties: { $geoip_country_code: country } })
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: dutch }, said('DE')), ['DE'])
    assert.deepEqual(await countriesOf(pennon, { HTTP_X_FORWARDED_FOR: dutch }, said(null)), ['NL'])
  })
})

it('GEOIP_DATABASE replaces the installed data', t => {
  const path = join(tempDir(t), 'City.mmdb')
  const norway = { country: { iso_code: 'NO', names: { en: 'Norway' } } }
  writeFileSync(path, writeMmdb({ ipVersion: 4, networks: [[[193], 8, norway]] }))
  const config = readConfig({ GEOIP_DATABASE: path })
  assert.ok(config.ok)
  const geoip = openGeoip(config.value, createSilentLogger())
  assert.ok(geoip.ok && geoip.value !== null)
  t.after(() => geoip.value!.close())
  assert.equal(geoip.value.lookUp(dutch)?.country_code, 'NO')
  assert.equal(geoip.value.lookUp(american), null)
})
