import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toCityLocation } from './city-location.ts'
import type { MmdbMap, MmdbValue } from './mmdb-file.ts'

/** Objects as the reader gives them. */
function asMmdb(value: unknown): MmdbValue {
  if (Array.isArray(value)) return value.map(asMmdb)
  if (typeof value !== 'object' || value === null) return value as MmdbValue
  return new Map(Object.entries(value).map(([key, item]) => [key, asMmdb(item)])) satisfies MmdbMap
}

describe('a record of the flat schema', () => {
  const flat = (fields: object) =>
    toCityLocation(
      asMmdb({
        ...{
          city: '',
          country_code: '',
          latitude: 0,
          longitude: 0,
          postcode: '',
          state1: '',
          state2: '',
          timezone: '',
        },
        ...fields,
      }),
    )

  it('gets the names that belong to its codes', () => {
    const record = {
      ...{ city: 'Amsterdam', country_code: 'NL', latitude: 52.37160110473633, longitude: 4.888299942016602 },
      ...{ postcode: '1012', state1: 'North Holland', state2: 'Gemeente Amsterdam', timezone: 'Europe/Amsterdam' },
    }
    assert.deepEqual(flat(record), {
      ...{ city_name: 'Amsterdam', subdivision_1_name: 'North Holland', subdivision_2_name: 'Gemeente Amsterdam' },
      ...{ country_code: 'NL', country_name: 'The Netherlands', continent_code: 'EU', continent_name: 'Europe' },
      ...{ postal_code: '1012', latitude: 52.3716, longitude: 4.8883, time_zone: 'Europe/Amsterdam' },
    })
  })

  it('has no value for an empty text, and no country for a code that no country has', () => {
    const location = flat({ country_code: 'RU' })
    assert.deepEqual([location?.city_name, location?.postal_code, location?.time_zone], [null, null, null])
    assert.deepEqual([location?.country_name, location?.continent_code], ['Russia', 'EU'])
    const unknown = flat({ country_code: 'ZZ' })
    assert.deepEqual([unknown?.country_code, unknown?.country_name, unknown?.continent_name], ['ZZ', null, null])
  })
})

describe('a record of the nested schema', () => {
  it('is read in English, with every subdivision', () => {
    const record = {
      city: { geoname_id: 1, names: { de: 'Stadt', en: 'Town' } },
      continent: { code: 'EU', names: { de: 'Europa', en: 'Europe' } },
      country: { iso_code: 'GB', names: { en: 'United Kingdom' } },
      location: { accuracy_radius: 10, latitude: 51.5142, longitude: -0.0931, time_zone: 'Europe/London' },
      postal: { code: 'EC2V' },
      registered_country: { iso_code: 'US', names: { en: 'United States' } },
      subdivisions: [
        { iso_code: 'ENG', names: { en: 'England' } },
        { names: { en: 'Second' } },
        { iso_code: 'T', names: { fr: 'Troisième' } },
        { names: { en: 'Fourth' } },
      ],
    }
    assert.deepEqual(toCityLocation(asMmdb(record)), {
      ...{ city_name: 'Town', subdivision_1_name: 'England', subdivision_1_code: 'ENG' },
      ...{ subdivision_2_name: 'Second', subdivision_2_code: null },
      ...{ country_name: 'United Kingdom', country_code: 'GB', continent_name: 'Europe', continent_code: 'EU' },
      ...{ postal_code: 'EC2V', latitude: 51.5142, longitude: -0.0931, accuracy_radius: 10 },
      ...{ time_zone: 'Europe/London', further: { subdivision_3_code: 'T', subdivision_4_name: 'Fourth' } },
    })
  })

  it('is read even if it lacks any of its parts, or has a part of another type', () => {
    const location = toCityLocation(
      asMmdb({ country: { iso_code: 'FR', names: 'France' }, subdivisions: 'none', city: 5 }),
    )
    assert.deepEqual([location?.country_code, location?.country_name, location?.city_name], ['FR', null, null])
  })
})

describe('a record without any location data', () => {
  it('gives no location', () => {
    for (const record of [null, 'text', 5, {}, { registered_country: { iso_code: 'US' } }, { subdivisions: [] }])
      assert.equal(toCityLocation(asMmdb(record)), null)
  })
})
