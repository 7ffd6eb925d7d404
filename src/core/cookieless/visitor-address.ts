// The one spelling of an address that is hashed: a visitor's events and flag requests may spell it in different ways.

/**
 * An IPv6 address in its shortest form, or as IPv4 when it maps an IPv4 address; any other text unchanged. Source:
 * docs/wire/ingestion.md 13.4.
 */
export function normalizeVisitorAddress(text: string): string {
  if (!text.includes(':')) return text
  const host = URL.parse(`http://[${text}]`)?.hostname
  if (host === undefined) return text
  const mapped = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(host)
  if (mapped === null) return host.slice(1, -1)
  const formatTwoOctets = (hex: string) => `${Number.parseInt(hex, 16) >>> 8}.${Number.parseInt(hex, 16) & 0xff}`
  return `${formatTwoOctets(mapped[1]!)}.${formatTwoOctets(mapped[2]!)}`
}
