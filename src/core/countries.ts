// Countries as in GeoLite2: English names and continents by code. Used for databases that have codes only and for imports,
// so that a country has the same name in all sources.

export interface Country {
  readonly name: string
  /** Two letters. */
  readonly continentCode: string
}

/**
 * Grouped by continent. This is a table because the first use of `Intl.DisplayNames` blocks the event loop for 20 to 60 ms,
 * and GeoLite2's names and continents differ from those of other sources. Source: docs/wire/ingestion.md 7.
 */
const table = {
  AF: `AC Ascension Island; AO Angola; BF Burkina Faso; BI Burundi; BJ Benin; BW Botswana; CD Congo (DRC);
    CF Central African Republic; CG Congo Republic; CI Ivory Coast; CM Cameroon; CV Cabo Verde; DJ Djibouti;
    DZ Algeria; EG Egypt; EH Western Sahara; ER Eritrea; ET Ethiopia; GA Gabon; GH Ghana; GM Gambia; GN Guinea;
    GQ Equatorial Guinea; GW Guinea-Bissau; KE Kenya; KM Comoros; LR Liberia; LS Lesotho; LY Libya; MA Morocco;
    MG Madagascar; ML Mali; MR Mauritania; MU Mauritius; MW Malawi; MZ Mozambique; NA Namibia; NE Niger; NG Nigeria;
    RE Réunion; RW Rwanda; SC Seychelles; SD Sudan; SH St. Helena; SL Sierra Leone; SN Senegal; SO Somalia;
    SS South Sudan; ST São Tomé and Príncipe; SZ Eswatini; TA Tristan da Cunha; TD Chad; TG Togo; TN Tunisia;
    TZ Tanzania; UG Uganda; YT Mayotte; ZA South Africa; ZM Zambia; ZW Zimbabwe`,
  AN: `AQ Antarctica; BV Bouvet Island; GS South Georgia and the South Sandwich Islands; HM Heard and McDonald Islands;
    TF French Southern Territories`,
  AS: `AE United Arab Emirates; AF Afghanistan; AM Armenia; AZ Azerbaijan; BD Bangladesh; BH Bahrain; BN Brunei;
    BT Bhutan; CC Cocos (Keeling) Islands; CN China; GE Georgia; HK Hong Kong; ID Indonesia; IL Israel; IN India;
    IO British Indian Ocean Territory; IQ Iraq; IR Iran; JO Jordan; JP Japan; KG Kyrgyzstan; KH Cambodia;
    KP North Korea; KR South Korea; KW Kuwait; KZ Kazakhstan; LA Laos; LB Lebanon; LK Sri Lanka; MM Myanmar;
    MN Mongolia; MO Macao; MV Maldives; MY Malaysia; NP Nepal; OM Oman; PH Philippines; PK Pakistan; PS Palestine;
    QA Qatar; SA Saudi Arabia; SG Singapore; SY Syria; TH Thailand; TJ Tajikistan; TM Turkmenistan; TR Türkiye;
    TW Taiwan; UZ Uzbekistan; VN Vietnam; YE Yemen`,
  EU: `AD Andorra; AL Albania; AT Austria; AX Åland Islands; BA Bosnia and Herzegovina; BE Belgium; BG Bulgaria;
    BY Belarus; CH Switzerland; CY Cyprus; CZ Czechia; DE Germany; DK Denmark; EE Estonia; ES Spain; FI Finland;
    FO Faroe Islands; FR France; GB United Kingdom; GG Guernsey; GI Gibraltar; GR Greece; HR Croatia; HU Hungary;
    IE Ireland; IM Isle of Man; IS Iceland; IT Italy; JE Jersey; LI Liechtenstein; LT Lithuania; LU Luxembourg;
    LV Latvia; MC Monaco; MD Moldova; ME Montenegro; MK North Macedonia; MT Malta; NL The Netherlands; NO Norway;
    PL Poland; PT Portugal; RO Romania; RS Serbia; RU Russia; SE Sweden; SI Slovenia; SJ Svalbard and Jan Mayen;
    SK Slovakia; SM San Marino; UA Ukraine; VA Vatican City; XK Kosovo`,
  NA: `AG Antigua and Barbuda; AI Anguilla; AW Aruba; BB Barbados; BL Saint Barthélemy; BM Bermuda;
    BQ Bonaire, Sint Eustatius and Saba; BS Bahamas; BZ Belize; CA Canada; CR Costa Rica; CU Cuba; CW Curaçao;
    DM Dominica; DO Dominican Republic; GD Grenada; GL Greenland; GP Guadeloupe; GT Guatemala; HN Honduras; HT Haiti;
    JM Jamaica; KN Saint Kitts and Nevis; KY Cayman Islands; LC Saint Lucia; MF Saint Martin; MQ Martinique;
    MS Montserrat; MX Mexico; NI Nicaragua; PA Panama; PM Saint Pierre and Miquelon; PR Puerto Rico; SV El Salvador;
    SX Sint Maarten; TC Turks and Caicos Islands; TT Trinidad and Tobago; US United States;
    VC Saint Vincent and the Grenadines; VG British Virgin Islands; VI U.S. Virgin Islands`,
  OC: `AS American Samoa; AU Australia; CK Cook Islands; CX Christmas Island; FJ Fiji;
    FM Federated States of Micronesia; GU Guam; KI Kiribati; MH Marshall Islands; MP Northern Mariana Islands;
    NC New Caledonia; NF Norfolk Island; NR Nauru; NU Niue; NZ New Zealand; PF French Polynesia; PG Papua New Guinea;
    PN Pitcairn Islands; PW Palau; SB Solomon Islands; TK Tokelau; TL Timor-Leste; TO Tonga; TV Tuvalu;
    UM United States Minor Outlying Islands; VU Vanuatu; WF Wallis and Futuna; WS Samoa`,
  SA: `AR Argentina; BO Bolivia; BR Brazil; CL Chile; CO Colombia; EC Ecuador; FK Falkland Islands; GF French Guiana;
    GY Guyana; PE Peru; PY Paraguay; SR Suriname; UY Uruguay; VE Venezuela`,
}

const continentNames: ReadonlyMap<string, string> = new Map([
  ['AF', 'Africa'],
  ['AN', 'Antarctica'],
  ['AS', 'Asia'],
  ['EU', 'Europe'],
  ['NA', 'North America'],
  ['OC', 'Oceania'],
  ['SA', 'South America'],
])

const countries: ReadonlyMap<string, Country> = new Map(
  Object.entries(table).flatMap(([continentCode, text]) =>
    text.split(/;\s+/).map(entry => [entry.slice(0, 2), { name: entry.slice(3), continentCode }] as const),
  ),
)

/** @param code ISO 3166-1 alpha-2, upper case. @returns null when no country has this code. */
export function countryOf(code: string): Country | null {
  return countries.get(code) ?? null
}

export function continentNameOf(continentCode: string): string | null {
  return continentNames.get(continentCode) ?? null
}
