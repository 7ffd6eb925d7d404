import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8')
const themes = ['light', 'dark'] as const
type Theme = (typeof themes)[number]

/** The least contrast of each token with the background and with a selected row. Source: WCAG 2.2, 1.4.3 and 1.4.11. */
const contrasts: Record<string, Record<Theme, readonly [onBackground: number, onSelected: number]>> = {
  text: { light: [16.9, 14.4], dark: [15.2, 11.6] },
  'text-second': { light: [8.1, 6.9], dark: [10, 7.7] },
  'text-third': { light: [5.7, 4.9], dark: [7.2, 5.5] },
  'control-border': { light: [3.9, 3.4], dark: [4.4, 3.4] },
  accent: { light: [6.3, 5.3], dark: [9.1, 7] },
  good: { light: [6.2, 5.3], dark: [9, 6.9] },
  caution: { light: [6.7, 5.7], dark: [9.5, 7.3] },
  bad: { light: [6.2, 5.3], dark: [8.1, 6.2] },
}

/** Reads the first declaration of a token, whose value is a colour or `light-dark(…, …)`. */
function readColour(token: string, theme: Theme): string {
  const value = css.match(new RegExp(`--${token}: ([^;]+);`))?.[1]
  assert.ok(value, `--${token} is declared`)
  const both = value.match(/^light-dark\((#\w{6}), (#\w{6})\)$/)
  return both === null ? value : both[theme === 'light' ? 1 : 2]!
}

function computeLuminance(colour: string): number {
  assert.match(colour, /^#[0-9a-f]{6}$/)
  const [red, green, blue] = [1, 3, 5].map(at => {
    const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

/** To one decimal. */
function computeContrast(token: string, other: string, theme: Theme): number {
  const [darker, lighter] = [token, other].map(name => computeLuminance(readColour(name, theme))).sort((a, b) => a - b)
  return Number(((lighter! + 0.05) / (darker! + 0.05)).toFixed(1))
}

describe('the colours', () => {
  for (const theme of themes) {
    it(`of the ${theme} theme can be read on the background and on a selected row`, () => {
      for (const [token, figures] of Object.entries(contrasts)) {
        const computed = ['background', 'selected'].map(ground => computeContrast(token, ground, theme))
        assert.deepEqual(computed, figures[theme], token)
      }
    })

    it(`of text can be read on surfaces and under the pointer in the ${theme} theme`, () => {
      for (const token of ['text', 'text-second', 'text-third', 'accent', 'good', 'caution', 'bad'])
        for (const ground of ['surface', 'hover'])
          assert.ok(computeContrast(token, ground, theme) >= 4.5, `${token} on ${ground}`)
    })

    it(`of a filled button can be read in the ${theme} theme`, () => {
      assert.equal(computeContrast('on-filled', 'filled', theme), theme === 'light' ? 6.3 : 5.3)
      assert.ok(computeContrast('on-filled', 'filled-hover', theme) >= 4.5)
    })

    it(`of the series can be read and seen in the ${theme} theme`, () => {
      for (let place = 1; place <= 8; place++)
        assert.ok(computeContrast(`series-${place}`, 'background', theme) >= 5, `series ${place}`)
    })
  }
})
