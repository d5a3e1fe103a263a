// Bundles the page into one file, dist/report.html: script and style inside it, a content security policy that names them
// by hash and allows no request, and one placeholder that `weir report` replaces with the document.
import { createHash } from "node:crypto";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const kPlaceholder = "__WEIR_DOCUMENT__";

function sha256(text: string): string {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

// Inside <script>, "</script" would end it and "<!--" would change how the rest is read; in strings and regular
// expressions, the only places a bundle has them, the escaped forms mean the same.
function inside_script(code: string): string {
  return code.replace(/<\/(script)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");
}

function one_file(): Plugin {
  return {
    name: "weir-one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let html = "";
      let code = "";
      let style = "";
      for (const [name, output] of Object.entries(bundle)) {
        if (output.type === "chunk") code += output.code;
        else if (name.endsWith(".css")) style += String(output.source);
        else if (name.endsWith(".html")) html = String(output.source);
        else this.error(`${name}: the page is one file, so it can have no assets`);
        delete bundle[name];
      }
      // A module's code has a scope of its own; a classic script at the end of the body needs a function for that.
      code = inside_script(`(()=>{${code.trim()}\n})();`);
      style = style.trim();
      // Style attributes stay allowed: positions are computed, and a style can fetch nothing under this policy.
      const policy = [
        "default-src 'none'",
        `script-src ${sha256(code)}`,
        `style-src-elem ${sha256(style)}`,
        "style-src-attr 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
      ].join("; ");
      html = html
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("</title>", () => `</title>\n    <style>${style}</style>`)
        .replace('<meta charset="utf-8" />', (meta) => `${meta}\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
        .replace("</body>", () => `<script>${code}</script>\n  </body>`);
      const places = html.split(kPlaceholder).length - 1;
      if (places !== 1) this.error(`${kPlaceholder} is in the page ${places} times: weir report replaces exactly one`);
      if (/<(script|link|img)[^>]+(src|href)=/i.test(html)) this.error("the page would load something: it may not");
      this.emitFile({ type: "asset", fileName: "report.html", source: html });
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [one_file()],
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
    rollupOptions: { output: { inlineDynamicImports: true } },
  },
  test: { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 15_000 } } },
});
