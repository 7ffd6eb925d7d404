/**
 * The locale of numbers and dates. The words of the screens are English, so that a browser in another language gets
 * dates that can be read in any country rather than words of a second language.
 */
export const locale =
  typeof navigator !== 'undefined' && navigator.language?.startsWith('en-') ? navigator.language : 'en-GB'
