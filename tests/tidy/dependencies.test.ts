import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

// `npm start` installs no development tools: what the program loads must be among the rest, however it loads it.
describe('packages', () => {
  it('that the program loads are installed by a start', () => {
    const { dependencies, optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
    const installed = new Set(Object.keys({ ...dependencies, ...optionalDependencies }))
    const files = globSync('{src,bin}/**/*.{ts,js}').filter(file => !file.endsWith('.test.ts'))
    const missing = files.flatMap(file => {
      const source = readFileSync(file, 'utf8').replace(/^import type .*$|^\s*(\/\/|\*|\/\*).*$/gm, '')
      const loaded = source.matchAll(
        /(?:from\s+|import\s*\(\s*|import\s+|(?:(?<!')require|\.resolve|url\))\(?\s*)'([^'.#/][^']*)'/g,
      )
      return [...loaded]
        .map(match => match[1]!)
        .filter(name => !name.startsWith('node:'))
        .map(name => name.match(/^(@[^/]+\/)?[^/]+/)![0])
        .filter(name => !installed.has(name))
        .map(name => `${file} loads ${name}`)
    })
    assert.ok(files.length > 100)
    assert.deepEqual(missing, [])
  })
})
