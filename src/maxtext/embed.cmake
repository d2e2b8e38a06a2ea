# Writes a C++ file that holds the room's data files as text: cmake -DROOM=... -DOUTPUT=... -P embed.cmake
#
# embedded.h declares what is defined here.
file(STRINGS ${ROOM}/catalog/names.txt names)
set(entries "")
foreach(line ${names})
  string(REPLACE " " ";" fields "${line}")
  list(GET fields 0 name)
  list(GET fields 1 family)
  file(READ ${ROOM}/catalog/${name}.json text)
  string(APPEND entries "    {\"${name}\", \"${family}\", R\"json(${text})json\"},\n")
endforeach()
file(READ ${ROOM}/data/settings.json settings)
file(WRITE ${OUTPUT} "#include \"maxtext/embedded.h\"

namespace maxport::maxtext {

namespace {
constexpr CatalogFile kFiles[] = {
${entries}};
}  // namespace

std::span<const CatalogFile> catalog_files() { return kFiles; }

std::string_view settings_table() {
  return R\"json(${settings})json\";
}

}  // namespace maxport::maxtext
")
