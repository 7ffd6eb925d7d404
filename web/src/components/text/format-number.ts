import { locale as defaultLocale } from './locale.ts'

/** Making a format takes far longer than using it, and a grid shows hundreds of numbers. */
const formats = new Map<string, Intl.NumberFormat>()

function numberFormat(locale: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${locale} ${JSON.stringify(options)}`
  let format = formats.get(key)
  if (format === undefined) {
    format = new Intl.NumberFormat(locale, options)
    formats.set(key, format)
  }
  return format
}

/** Exact, with separators: `1,204`. */
export function formatCount(count: number, locale: string = defaultLocale): string {
  return numberFormat(locale, { maximumFractionDigits: 20 }).format(count)
}

/**
 * The count and the word for what is counted: `1 flag`, `1,204 flags`.
 * @param isMore whether there are more than were counted: `more than 10,000 flags`.
 */
export function formatCounted(
  count: number,
  words: { readonly one: string; readonly other: string },
  isMore = false,
  locale: string = defaultLocale,
): string {
  const isOne = new Intl.PluralRules(locale).select(count) === 'one' && !isMore
  return `${isMore ? 'more than ' : ''}${formatCount(count, locale)} ${isOne ? words.one : words.other}`
}

/** @param percentage 0 to 100. */
export function formatPercentage(percentage: number, digitsMax = 2, locale: string = defaultLocale): string {
  const format = numberFormat(locale, { style: 'percent', maximumFractionDigits: digitsMax })
  // The locale decides whether a space is before the sign. Division by 100 may not change the digits that are shown.
  return format.format(Number((percentage / 100).toPrecision(15)))
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** Three digits and a unit: `1.25 MiB`; bytes below 1 KiB are exact. */
export function formatBytes(bytes: number, locale: string = defaultLocale): string {
  let unit = 0
  let amount = bytes
  // 1,023.5 KiB would be rounded to 1,024 KiB.
  while (Math.abs(Math.round(amount)) >= 1024 && unit < byteUnits.length - 1) {
    amount /= 1024
    unit++
  }
  const rounded = unit === 0 || Math.abs(amount) >= 100 ? Math.round(amount) : Number(amount.toPrecision(3))
  return `${formatCount(rounded, locale)} ${byteUnits[unit]}`
}

/** Three digits, for axes and narrow places; the exact number belongs in the title. */
export function formatShortCount(count: number): string {
  // In some regions a million is `m`, which is also a thousandth.
  return numberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 }).format(count)
}
