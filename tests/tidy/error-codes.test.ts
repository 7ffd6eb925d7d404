import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { describe, it } from 'node:test'

// A released code keeps its meaning, so all codes are in one list that people can look up.
const documented = new Set(
  [...readFileSync('docs/wire/errors.md', 'utf8').matchAll(/`([a-z][a-z_0-9]*)`/g)].map(match => match[1]!),
)

const sources = globSync('src/{wire,http}/**/*.ts').filter(file => !file.endsWith('.test.ts'))
const codes = new Map<string, string>()
for (const file of sources) {
  const source = readFileSync(file, 'utf8')
  for (const match of source.matchAll(
    /\b(?:wireError\(\s*\d+,|createDecodingError\(|captureError\(\s*\d+,)\s*'([a-z_0-9]+)'/g,
  ))
    codes.set(match[1]!, file)
}

describe('error codes', () => {
  it('are all found by the search in this test', () => {
    for (const code of ['invalid_json', 'not_authenticated', 'transient_error', 'permission_denied'])
      assert.ok(codes.has(code), code)
  })

  it('are all listed in docs/wire/errors.md', () => {
    assert.deepEqual(
      [...codes].filter(([code]) => !documented.has(code)),
      [],
    )
  })
})

describe('error messages in docs/wire/errors.md', () => {
  it('equal those in the source, apart from the parts that depend on the request', () => {
    const texts = [...sources, ...globSync('src/core/**/*.ts')].map(file => readFileSync(file, 'utf8'))
    const source = [...texts, ...Object.values(STATUS_CODES)].join('\n')
    const pieces: string[] = []
    let hasTexts = false
    for (const line of readFileSync('docs/wire/errors.md', 'utf8').split('\n')) {
      const cell = line.split('|').at(-2)?.trim()
      if (cell === undefined) hasTexts = false
      else if (/^(?:Text|`detail`|Message)$/.test(cell)) hasTexts = true
      else if (hasTexts) pieces.push(...cell.split(/ \/ |…|: |[`"()\d]+/).map(piece => piece.trim()))
    }
    assert.ok(pieces.length > 150, `${pieces.length} pieces of texts`)
    assert.deepEqual(
      pieces.filter(piece => /[a-z] [a-z]/i.test(piece) && !source.includes(piece)),
      [],
    )
  })
})

describe('settings', () => {
  it('are all listed in docs/operating/settings.md, with their defaults', () => {
    const page = readFileSync('docs/operating/settings.md', 'utf8')
    const config = readFileSync('src/config.ts', 'utf8')
    const settings = [...config.matchAll(/setting\(\s*'([A-Z_]+)',\s*'([^']*)'/g)].map(
      match => [match[1]!, match[2]!] as const,
    )
    assert.ok(settings.length > 12)
    for (const [variable, fallback] of settings) {
      const row = page.split('\n').find(line => line.startsWith(`| \`${variable}\``))
      assert.ok(row, `${variable} has no row`)
      assert.ok(fallback === '' || row.includes(`\`${fallback}\``), `${variable}: the page does not say ${fallback}`)
    }
  })
})
