/** Texts that components have to bear. */
export const samples = {
  long: `new-checkout-${'very-long-key-without-any-place-to-break-'.repeat(9)}end`,
  sentence:
    'A label that goes on for much longer than anybody would write one, because somebody will translate it into a language whose words are long',
  rightToLeft: 'مرحبا new-checkout بالعالم',
  hebrew: 'שלום עולם, 25 % מהאנשים',
  override: 'invoice\u202Egpj.exe',
  control: 'a\u0000b\u001b[31m\ttab\nline',
  markup: '<img src=x onerror=alert(1)>',
  script: '"><script>alert(1)</script>{{7*7}}',
  scriptAddress: 'javascript:alert(1)',
  spaces: '  two spaces before, one after ',
  emoji: '👩‍👩‍👧 e\u0301 Z̷a̷l̷g̷o̷',
} as const
