import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type GeoipLocation, geoipKeys, toEvaluationProperties, toGeoipProperties } from './geoip.ts'

const everything = Object.fromEntries(geoipKeys.map(key => [key, `the ${key}`])) as GeoipLocation

describe('toEvaluationProperties', () => {
  it('returns the seven properties that the override header replaces', () => {
    assert.deepEqual(toEvaluationProperties(everything), {
      $geoip_city_name: 'the city_name',
      $geoip_country_name: 'the country_name',
      $geoip_country_code: 'the country_code',
      $geoip_continent_name: 'the continent_name',
      $geoip_continent_code: 'the continent_code',
      $geoip_postal_code: 'the postal_code',
      $geoip_time_zone: 'the time_zone',
    })
  })

  it('leaves out unknown values, so that stored values apply', () => {
    assert.deepEqual(toEvaluationProperties({ country_code: 'NO', city_name: null }), { $geoip_country_code: 'NO' })
  })
})

describe('toGeoipProperties', () => {
  it('sets known values on the event, and on the person also null for unknown values', () => {
    const { event, set, setOnce } = toGeoipProperties({ country_code: 'NO', city_name: null })
    assert.deepEqual(event, { $geoip_country_code: 'NO' })
    assert.deepEqual(
      Object.keys(set),
      geoipKeys.map(key => `$geoip_${key}`),
    )
    assert.deepEqual([set.$geoip_country_code, set.$geoip_city_name, set.$geoip_latitude], ['NO', null, null])
    assert.deepEqual(
      Object.keys(setOnce),
      geoipKeys.map(key => `$initial_geoip_${key}`),
    )
  })
})
