// Countries as in GeoLite2: English names and continents by code. Used for databases that have codes only and for
// imports, so that a country has one name whatever the source.

import { createRequire } from 'node:module'

export interface Country {
  readonly name: string
  /** Two letters. */
  readonly continentCode: string
}

/** GeoLite2's names that differ from those of `countries-list`. Source: docs/wire/ingestion.md 7. */
const geoLite2Names: Readonly<Record<string, string>> = {
  AX: 'Åland Islands',
  BL: 'Saint Barthélemy',
  BQ: 'Bonaire, Sint Eustatius and Saba',
  CD: 'Congo (DRC)',
  CG: 'Congo Republic',
  CW: 'Curaçao',
  FM: 'Federated States of Micronesia',
  HM: 'Heard and McDonald Islands',
  NL: 'The Netherlands',
  RE: 'Réunion',
  SH: 'St. Helena',
  ST: 'São Tomé and Príncipe',
  TL: 'Timor-Leste',
  UM: 'United States Minor Outlying Islands',
}
/** GeoLite2's continents that differ. */
const geoLite2Continents: Readonly<Record<string, string>> = { RU: 'EU', CX: 'OC' }

const continentNames: ReadonlyMap<string, string> = new Map([
  ['AF', 'Africa'],
  ['AN', 'Antarctica'],
  ['AS', 'Asia'],
  ['EU', 'Europe'],
  ['NA', 'North America'],
  ['OC', 'Oceania'],
  ['SA', 'South America'],
])

let countries: ReadonlyMap<string, Country> | undefined

/** @param code ISO 3166-1 alpha-2, upper case. @returns null when no country has it. */
export function countryOf(code: string): Country | null {
  countries ??= loadCountries()
  return countries.get(code) ?? null
}

export function continentName(continentCode: string): string | null {
  return continentNames.get(continentCode) ?? null
}

/** Loaded with the first look-up: a process without one saves 6 MB. */
function loadCountries(): ReadonlyMap<string, Country> {
  const list = createRequire(import.meta.url)('countries-list') as typeof import('countries-list')
  return new Map(
    Object.entries(list.countries).map(([code, { name, continent }]) => [
      code,
      { name: geoLite2Names[code] ?? name, continentCode: geoLite2Continents[code] ?? continent },
    ]),
  )
}
