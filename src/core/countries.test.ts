import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { continentNameOf, countryOf } from './countries.ts'

const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
const codes = letters.flatMap(first => letters.map(second => first + second)).filter(code => countryOf(code) !== null)

/** Where GeoLite2 differs from CLDR. Source: docs/wire/ingestion.md 7. */
const notAsInCldr: Readonly<Record<string, string>> = {
  AG: 'Antigua and Barbuda',
  BA: 'Bosnia and Herzegovina',
  BL: 'Saint Barthélemy',
  BQ: 'Bonaire, Sint Eustatius and Saba',
  CD: 'Congo (DRC)',
  CG: 'Congo Republic',
  CI: 'Ivory Coast',
  CV: 'Cabo Verde',
  FM: 'Federated States of Micronesia',
  GS: 'South Georgia and the South Sandwich Islands',
  HK: 'Hong Kong',
  HM: 'Heard and McDonald Islands',
  KN: 'Saint Kitts and Nevis',
  LC: 'Saint Lucia',
  MF: 'Saint Martin',
  MM: 'Myanmar',
  MO: 'Macao',
  NL: 'The Netherlands',
  PM: 'Saint Pierre and Miquelon',
  PS: 'Palestine',
  SJ: 'Svalbard and Jan Mayen',
  ST: 'São Tomé and Príncipe',
  TC: 'Turks and Caicos Islands',
  TT: 'Trinidad and Tobago',
  UM: 'United States Minor Outlying Islands',
  VC: 'Saint Vincent and the Grenadines',
  WF: 'Wallis and Futuna',
}

describe('countries', () => {
  it('have the names that GeoLite2 uses, which are those of CLDR with listed exceptions', () => {
    const cldr = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
    assert.equal(codes.length, 252)
    assert.deepEqual(
      codes.map(code => [code, countryOf(code)?.name]),
      codes.map(code => [code, notAsInCldr[code] ?? cldr.of(code)]),
    )
  })

  it('lie on the continents that GeoLite2 assigns to them', () => {
    const samples = ['NO', 'RU', 'TR', 'CX', 'AQ', 'US', 'BR', 'KE', 'JP']
    assert.deepEqual(
      samples.map(code => countryOf(code)?.continentCode),
      ['EU', 'EU', 'AS', 'OC', 'AN', 'NA', 'SA', 'AF', 'AS'],
    )
    for (const code of codes) assert.ok(continentNameOf(countryOf(code)!.continentCode) !== null, code)
  })

  it('do not include a code that belongs to no country', () => {
    assert.equal(countryOf('ZZ'), null)
    assert.equal(countryOf('constructor'), null)
    assert.equal(countryOf(''), null)
  })
})
