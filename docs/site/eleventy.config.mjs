// The documentation as a site: the Markdown as it lies in the repository, with links that
// lead from page to page. What a page says of other files leads to the repository.
// scripts/site.sh calls it in a folder that has the pages and nothing else.
import fs from "node:fs";
import path from "node:path";

const repository = "https://github.com/boardd/boardd/blob/" + process.env.SITE_COMMIT + "/";
const groups = JSON.parse(fs.readFileSync("nav.json", "utf8"));
const sources = groups.flatMap(group => group.pages);

// titleOf is the first heading of a page.
const titleOf = source => /^# (.*)$/m.exec(fs.readFileSync(source, "utf8"))[1].replaceAll("`", "");

// placeOf is where a page comes to lie.
const placeOf = source => source === "README.md" ? "index.html" : source.replace(/\.md$/, ".html").toLowerCase();

// slug is what GitHub makes of a heading, so that links work there and here.
function slug(text, used) {
  const base = text.toLowerCase().replace(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, "").replaceAll(" ", "-");
  const n = used.get(base) ?? 0;
  used.set(base, n + 1);
  return n ? base + "-" + n : base;
}

// lead is where a link of a page leads to.
function lead(source, href) {
  if (/^[a-z]+:|^#/.test(href)) return href;
  const [file, anchor] = href.split("#");
  const to = path.posix.join(path.posix.dirname(source), file);
  const tail = anchor === undefined ? "" : "#" + anchor;
  if (sources.includes(to)) return (path.posix.relative(path.posix.dirname(placeOf(source)), placeOf(to)) || path.posix.basename(placeOf(to))) + tail;
  return repository + to + tail;
}

export default function (site) {
  site.addGlobalData("layout", "page.njk");
  site.addGlobalData("version", process.env.SITE_VERSION);
  site.addGlobalData("nav", groups.map(group => ({
    title: group.title, pages: group.pages.map(source => ({to: placeOf(source), title: source === "README.md" ? "What it is" : titleOf(source)})),
  })));
  site.addGlobalData("eleventyComputed", {
    title: data => titleOf(data.page.inputPath),
    to: data => placeOf(path.posix.normalize(data.page.inputPath)),
    top: data => "../".repeat(placeOf(path.posix.normalize(data.page.inputPath)).split("/").length - 1),
    permalink: data => placeOf(path.posix.normalize(data.page.inputPath)),
  });
  site.addPassthroughCopy("docs/pictures");
  site.addPassthroughCopy({"site.css": "site.css", "search.js": "search.js"});
  site.amendLibrary("md", md => {
    md.core.ruler.push("headings", state => {
      const used = new Map();
      state.tokens.forEach((token, i) => {
        if (token.type !== "heading_open") return;
        const text = state.tokens[i + 1].children.filter(t => t.type === "text" || t.type === "code_inline").map(t => t.content).join("");
        token.attrSet("id", slug(text, used));
      });
    });
    const link = md.renderer.rules.link_open ?? ((tokens, i, options, env, self) => self.renderToken(tokens, i, options));
    md.renderer.rules.link_open = (tokens, i, options, env, self) => {
      tokens[i].attrSet("href", lead(path.posix.normalize(env.page.inputPath), tokens[i].attrGet("href")));
      return link(tokens, i, options, env, self);
    };
  });
}

export const config = {markdownTemplateEngine: false, dir: {input: ".", includes: "_includes", output: process.env.SITE_OUT}};
